// What the current item of an array may still become, beside the earlier ones.
#include <algorithm>
#include <array>
#include <utility>

#include "core/token_mask.h"
#include "guidance/unique_items.h"

namespace fermata {

namespace {

// Behind so many items, what one of them can still become is taken as it was for the item before.
constexpr std::size_t kManyItems = 32;

constexpr std::array<std::string_view, 6> kNumberEnds = {",", "]", " ", "\n", "\t", "\r"};
// What a text may go on with.
constexpr std::string_view kLetters =
    "aeiostnr1025-_ "
    "./\"bcdfghjklmpquvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ346789:;,!?@#$%&*+=~^'`|()[]{}<>";
constexpr std::array<std::string_view, 3> kForeignLetters = {"\xC3\xA9", "\xE6\x97\xA5",
                                                             "\xD1\x8F"};
// What other values may go on with, without blanks and without what leaves a number's value.
constexpr std::array<std::string_view, 37> kParts = {
    "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "0",  ".1", ".2", ".3",
    ".4", ".5", ".6", ".7", ".8", ".9", "-1", "-2", "-3", "-4", "-5", "-6", "-7",
    "-8", "-9", "\"", "t",  "f",  "n",  "[",  "{",  ",",  "]",  "}"};

std::size_t common_length(std::string_view a, std::string_view b) {
    const auto [end, other] = std::ranges::mismatch(a, b);
    return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

// A place in an earlier item, between two of its characters.
struct UniqueItems::Node {
    std::size_t raw = 0;
    std::size_t plain = 0;
    UniqueReader::Mode mode = UniqueReader::Mode::kBetween;
    bool in_fraction = false;
};

std::string_view UniqueItems::plain(const Rival& rival) const {
    return reader_.plain(reader_.values()[rival.value]);
}

void UniqueItems::find_current_rivals() {
    if (std::exchange(has_rivals_, true)) return;
    rivals_.clear();
    for (std::size_t frame = 0; frame < reader_.frames().size(); ++frame)
        add_rivals(rivals_, frame, {});
}

// `pending`: bytes of a token that the reader has read and the grammar has not.
void UniqueItems::add_rivals(std::vector<Rival>& rivals, std::size_t frame,
                             std::string_view pending) {
    const UniqueReader::Frame& array = reader_.frames()[frame];
    const bool is_last = frame + 1 == reader_.frames().size();
    if (!array.is_unique || !(array.in_item || (is_last && reader_.before_item()))) return;
    const std::string_view partial = reader_.partial(array);
    std::vector<Rival> found;
    std::size_t items = 0;
    for (int at = array.last; at >= 0; ++items) {
        const auto value = static_cast<std::size_t>(at);
        if (reader_.plain(reader_.values()[value]).starts_with(partial))
            found.push_back({frame, value});
        at = reader_.values()[value].previous;
    }
    std::ranges::sort(found,
                      [this](const Rival& a, const Rival& b) { return plain(a) < plain(b); });
    branches_.resize(std::max(branches_.size(), reader_.values().size()));
    const std::size_t item = array.in_item ? array.plain : reader_.plain_size();
    for (Rival& rival : found) {
        Branch& known = branches_[rival.value];
        const bool is_known =
            known.item == item || (items >= kManyItems && known.items >= kManyItems);
        if (is_known && pending.empty()) {
            rival.branch = known;
            continue;
        }
        rival.branch = find_branch(found, rival, std::string(pending));
        rival.branch.item = item;
        rival.branch.items = items;
        if (pending.empty()) known = rival.branch;
    }
    // Where it can become one of which it is known that it can become another.
    const auto sweep = [this](auto first, auto last) {
        std::size_t alive = 0;
        for (auto at = first; at != last; ++at) {
            if (at != first)
                alive = std::min(alive, common_length(plain(*std::prev(at)), plain(*at)));
            if (!at->branch.reachable) continue;
            at->branch.alive = alive = std::max(alive, at->branch.alive);
        }
    };
    sweep(found.begin(), found.end());
    sweep(found.rbegin(), found.rend());
    rivals.insert(rivals.end(), found.begin(), found.end());
}

std::vector<UniqueItems::Node> UniqueItems::nodes(const Rival& rival) const {
    const UniqueReader::Value& value = reader_.values()[rival.value];
    const std::string_view plain = reader_.plain(value);
    const std::string_view raw = reader_.raw(value);
    UniqueReader reader;
    reader.open({});
    std::vector<Node> found(1);
    bool in_fraction = false;
    for (std::size_t at = 0; at < raw.size(); ++at) {
        reader.feed(raw[at], nullptr);
        const UniqueReader::Frame& array = reader.frames().front();
        if (!array.in_item) break;
        const std::string_view partial = reader.partial(array);
        in_fraction =
            reader.mode() == UniqueReader::Mode::kNumber && (in_fraction || raw[at] == '.');
        if (reader.is_between_letters() && plain.starts_with(partial))
            found.push_back({at + 1, partial.size(), reader.mode(), in_fraction});
    }
    if (reader.mode() == UniqueReader::Mode::kNumber && reader.frames().size() == 1) {
        if (found.back().mode == UniqueReader::Mode::kNumber) found.pop_back();
        found.push_back({raw.size(), plain.size(), UniqueReader::Mode::kNumber, in_fraction});
    }
    return found;
}

UniqueItems::Branch UniqueItems::find_branch(const std::vector<Rival>& rivals, const Rival& rival,
                                             const std::string& pending) {
    const UniqueReader::Frame& array = reader_.frames()[rival.frame];
    const UniqueReader::Value& value = reader_.values()[rival.value];
    const std::size_t begun = reader_.partial(array).size();
    // It is the first item or none, and something else may be the first.
    if (!value.marker.empty()) return {.reachable = begun > 0 || reader_.before_first_item()};
    const std::vector<Node> all = nodes(rival);
    const std::string raw(reader_.raw(value));
    const auto [first, last] = std::ranges::equal_range(all, begun, {}, &Node::plain);
    if (first == last || !reader_.is_between_letters()) return {};
    const Node& start = reader_.after_blank() ? *std::prev(last) : *first;
    if (!takes(pending + raw.substr(start.raw))) return {};
    for (auto node = all.rbegin(); node != all.rend() && node->raw >= start.raw; ++node) {
        if (leaves(rivals, rival, *node, pending + raw.substr(start.raw, node->raw - start.raw)))
            return {.reachable = true, .alive = node->plain};
    }
    return {.reachable = true, .alive = begun - std::min<std::size_t>(begun, 1)};
}

// The grammar allows something else there than what the rivals have.
bool UniqueItems::leaves(const std::vector<Rival>& rivals, const Rival& rival, const Node& node,
                         const std::string& before) {
    const std::string begin(plain(rival).substr(0, node.plain));
    const auto is_other = [&](std::string_view part) {
        const std::string longer = begin + part[0];
        const auto found =
            std::ranges::lower_bound(rivals, std::string_view(longer), {},
                                     [this](const Rival& each) { return plain(each); });
        return found == rivals.end() || !plain(*found).starts_with(longer);
    };
    const auto goes_on = [&](std::string_view part) {
        return is_other(part) && takes(before + std::string(part));
    };
    if (node.mode == UniqueReader::Mode::kString) {
        for (std::size_t at = 0; at < kLetters.size(); ++at) {
            if (goes_on(kLetters.substr(at, 1))) return true;
        }
        return std::ranges::any_of(kForeignLetters, goes_on);
    }
    const std::string_view whole = plain(rival);
    const bool is_number = whole[0] == '-' || (whole[0] >= '0' && whole[0] <= '9');
    return std::ranges::any_of(kParts, [&](std::string_view part) {
        if (node.in_fraction && part == "0") return false;
        const bool ends = is_number && (part == "," || part == "]");
        if (!ends) return goes_on(part);
        const auto equal = std::ranges::lower_bound(
            rivals, std::string_view(begin), {}, [this](const Rival& each) { return plain(each); });
        const bool is_taken = equal != rivals.end() && plain(*equal) == begin;
        return !is_taken && takes(before + std::string(part));
    });
}

// As far as it is known what the current item may still become.
bool UniqueItems::can_differ(const std::vector<Rival>& rivals, std::size_t frame) const {
    const std::string_view partial = reader_.partial(reader_.frames()[frame]);
    bool differs = true;
    const auto of_frame = std::ranges::equal_range(rivals, frame, {}, &Rival::frame);
    auto rival = std::ranges::lower_bound(of_frame, partial, {},
                                          [this](const Rival& each) { return plain(each); });
    for (; rival != of_frame.end() && plain(*rival).starts_with(partial); ++rival) {
        if (!rival->branch.reachable) continue;
        if (rival->branch.alive >= partial.size()) return true;
        differs = false;
    }
    return differs;
}

// A number that is now spelled otherwise than an equal item may go on to be another number.
bool UniqueItems::ends_otherwise(std::size_t frame, const std::string& pending) {
    const UniqueReader::Frame& array = reader_.frames()[frame];
    const std::string number = reader_.number();
    if (number.empty() || frame + 1 != reader_.frames().size()) return true;
    const std::string_view partial = reader_.partial(array);
    const bool in_fraction = partial.find('.') != std::string_view::npos;
    for (int at = array.last; at >= 0;) {
        const UniqueReader::Value& value = reader_.values()[static_cast<std::size_t>(at)];
        if (reader_.plain(value) == number && partial != number)
            return std::ranges::any_of(kParts, [&](std::string_view part) {
                const bool is_digit = part[0] >= '0' && part[0] <= '9';
                return (part[0] == '.' || (is_digit && !(in_fraction && part == "0"))) &&
                       takes(pending + std::string(part));
            });
        at = value.previous;
    }
    return true;
}

// The reader has read `pending`, behind what mark_ says.
bool UniqueItems::is_alive(std::string_view pending) {
    for (std::size_t frame = 0; frame < reader_.frames().size(); ++frame) {
        const UniqueReader::Frame& array = reader_.frames()[frame];
        if (!array.is_unique || !array.in_item) continue;
        const bool is_old = frame < mark_.frames.size() && mark_.frames[frame].last == array.last;
        // An item that the token only goes on with.
        const bool is_same = is_old && (mark_.frames[frame].in_item ||
                                        (mark_.before_item && frame + 1 == mark_.frames.size()));
        if (is_same) {
            if (!can_differ(rivals_, frame)) return false;
        } else if (reader_.partial(array).size() > 1 || reader_.is_in_first_item()) {
            std::vector<Rival> rivals;
            add_rivals(rivals, frame, pending);
            if (!can_differ(rivals, frame)) return false;
        }
        if (!ends_otherwise(frame, std::string(pending))) return false;
    }
    return true;
}

void UniqueItems::forbid(std::vector<std::uint32_t>& mask, const Rival& rival) const {
    const UniqueReader::Value& value = reader_.values()[rival.value];
    const std::size_t begun = reader_.partial(reader_.frames()[rival.frame]).size();
    const auto take_all = [&](std::string_view begin) {
        if (begin.empty()) return;
        for (const Token token : vocabulary_.beginning_with(begin))
            take_out(mask, token);
    };
    const std::string_view whole = plain(rival);
    const std::string_view raw = reader_.raw(value);
    // It may be spelled as it was, or without what it can do without.
    if (whole != raw && whole[0] == '"') take_all(whole.substr(begun));
    if (!rival.branch.reachable) return;
    if (!value.marker.empty()) return take_all(raw.substr(0, 1));
    const std::vector<Node> all = nodes(rival);
    const auto [first, last] = std::ranges::equal_range(all, begun, {}, &Node::plain);
    if (first == last) return;
    const std::size_t from = (reader_.after_blank() ? *std::prev(last) : *first).raw;
    if (rival.branch.alive >= whole.size()) {
        for (const std::string_view end : kNumberEnds)
            take_all(std::string(raw.substr(from)).append(end));
        return;
    }
    const auto dead =
        std::ranges::upper_bound(all, std::max(rival.branch.alive, begun), {}, &Node::plain);
    const std::size_t end = dead == all.end() ? raw.size() : dead->raw;
    take_all(raw.substr(from, end - from));
}

}  // namespace fermata
