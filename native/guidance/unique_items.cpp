#include "guidance/unique_items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/token_mask.h"

namespace fermata {

namespace {

// src/guidance/schema/write/unique.ts writes the same. An array has one of the first items that
// another one like it has not, or lacks the one that every other array of free texts has.
struct Marker {
    std::string item;
    std::string other;
};
const std::array<Marker, 2> kMarkers = {{
    {"7919283746501", "7919283746502"},
    {"\"\xEF\xA3\xBFunique\"", "\"\xEF\xA3\xBFothers\""},
}};
const std::string kLacking = "\xEF\xA3\xBF";
constexpr std::string_view kLackingInPattern = "x{f8ff}";
const std::string kNoMarker;

// Up to so many allowed tokens are looked at one by one.
constexpr std::size_t kFew = 4096;
std::size_t count_bits(TokenMask mask) {
    std::size_t count = 0;
    for (const std::uint32_t word : mask)
        count += static_cast<std::size_t>(std::popcount(word));
    return count;
}

}  // namespace

UniqueItems::UniqueItems(const UniqueVocabulary& vocabulary, Probe probe)
    : vocabulary_(vocabulary), probe_(std::move(probe)) {}

bool UniqueItems::are_in(const std::string& lark) {
    return lark.find(kMarkers[0].item) != std::string::npos ||
           lark.find(kLacking) != std::string::npos ||
           lark.find(kLackingInPattern) != std::string::npos;
}

bool UniqueItems::takes(const std::string& text) {
    const std::vector<Token> tokens = vocabulary_.spell(text);
    return !tokens.empty() && probe_(tokens) == tokens.size();
}

// `text`, up to and with a `[`, is what the grammar allows next. Behind a bracket of free text,
// anything is allowed.
const std::string* UniqueItems::marker_at(std::string_view text) {
    const std::string before(text);
    if (takes(before + "~")) return nullptr;
    for (const auto& [item, other] : kMarkers) {
        if (takes(before + item + "]") && !takes(before + other + "]")) return &item;
    }
    const bool lacks = takes(before + '"' + kLacking + 'a') &&
                       !takes(before + '"' + kLacking + "\"") && takes(before + "\"a\"");
    return lacks ? &kNoMarker : nullptr;
}

bool UniqueItems::is_idle(Token token) const {
    return !reader_.active() && vocabulary_.bytes(token).find('[') == std::string_view::npos;
}

void UniqueItems::consume(Token token) {
    const std::string_view text = vocabulary_.bytes(token);
    has_rivals_ = false;
    if (!reader_.active() || text.empty()) {
        reader_.clear();
        branches_.clear();
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool active = reader_.active();
        const bool opens =
            text[at] == '[' && (!active || reader_.mode() == UniqueReader::Mode::kBetween);
        const std::string* marker = opens ? marker_at(text.substr(0, at + 1)) : nullptr;
        if (marker != nullptr) openings_.push_back({count_, at, marker, !active});
        if (active)
            reader_.feed(text[at], marker);
        else if (marker != nullptr)
            reader_.open(*marker);
        if (active && !reader_.active()) {
            const auto outermost =
                std::find_if(openings_.rbegin(), openings_.rend(),
                             [](const Opening& each) { return each.is_outermost; });
            outermost->closed = count_ + 1;
        }
    }
    ++count_;
}

void UniqueItems::rollback(const std::vector<Token>& consumed) {
    count_ = consumed.size();
    has_rivals_ = false;
    branches_.clear();
    reader_.clear();
    while (!openings_.empty() && openings_.back().token >= count_)
        openings_.pop_back();
    auto opening = std::find_if(openings_.rbegin(), openings_.rend(), [](const Opening& each) {
                       return each.is_outermost;
                   }).base();
    if (opening == openings_.begin()) return;
    --opening;
    if (opening->closed <= count_) return;
    opening->closed = kNone;
    for (std::size_t index = opening->token; index < count_; ++index) {
        const std::string_view text = vocabulary_.bytes(consumed[index]);
        for (std::size_t at = 0; at < text.size(); ++at) {
            const bool is_opening =
                opening != openings_.end() && opening->token == index && opening->offset == at;
            const std::string* marker = is_opening ? (opening++)->marker : nullptr;
            if (reader_.active())
                reader_.feed(text[at], marker);
            else if (marker != nullptr)
                reader_.open(*marker);
        }
    }
}

bool UniqueItems::allows(Token token) {
    const std::string_view text = vocabulary_.bytes(token);
    if (text.empty() || is_idle(token)) return true;
    find_current_rivals();
    reader_.mark(mark_);
    bool allowed = true;
    for (std::size_t at = 0; at < text.size() && allowed; ++at) {
        const bool opens = text[at] == '[' && at + 1 < text.size() &&
                           (!reader_.active() || reader_.mode() == UniqueReader::Mode::kBetween);
        const std::string* marker = opens ? marker_at(text.substr(0, at + 1)) : nullptr;
        if (reader_.active())
            allowed = reader_.feed(text[at], marker);
        else if (marker != nullptr)
            reader_.open(*marker);
    }
    allowed = allowed && is_alive(text);
    reader_.undo(mark_);
    return allowed;
}

void UniqueItems::check(std::vector<std::uint32_t>& mask, const std::vector<Token>& tokens) {
    for (const Token token : tokens) {
        if (fermata::allows(mask, token) && !allows(token)) take_out(mask, token);
    }
}

void UniqueItems::filter(std::vector<std::uint32_t>& mask) {
    const bool remembers = std::ranges::any_of(
        reader_.frames(), [](const auto& frame) { return frame.is_unique && frame.last >= 0; });
    if (!remembers) return check_general(mask, count_bits(mask) <= kFew);
    find_current_rivals();
    const bool is_in_text = reader_.mode() == UniqueReader::Mode::kString;
    // A text that is no earlier one's beginning ends as none of them.
    if (rivals_.empty() && is_in_text && reader_.frames().back().is_unique)
        return check_general(mask, count_bits(mask) <= kFew);
    const std::vector<std::uint32_t> whole = mask;
    for (const Rival& rival : rivals_)
        forbid(mask, rival);
    if (count_bits(mask) <= kFew) {
        std::vector<Token> allowed;
        for_each_allowed(mask, vocabulary_.size(),
                         [&](std::size_t id) { allowed.push_back(static_cast<Token>(id)); });
        check(mask, allowed);
    } else if (reader_.mode() == UniqueReader::Mode::kEscape) {
        check(mask, vocabulary_.quoted);
    } else {
        check_general(mask, false);
        check(mask, reader_.frames().back().is_unique ? vocabulary_.escaping : vocabulary_.closing);
    }
    // Else the grammar would have no way on at all.
    if (count_bits(mask) == 0) mask = whole;
}

// What matters wherever an array is, or begins. Where much is allowed, this is inside of a text,
// and a token must end it first.
void UniqueItems::check_general(std::vector<std::uint32_t>& mask, bool is_narrow) {
    check(mask, is_narrow ? vocabulary_.opening : vocabulary_.opening_behind_quote);
    if (reader_.active()) check(mask, is_narrow ? vocabulary_.several : vocabulary_.several_quoted);
}

}  // namespace fermata
