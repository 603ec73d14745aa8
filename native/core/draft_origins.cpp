// Drafts of a next row by where each token of the row before was copied from:
//
//     source  1047,Anna,Oslo    1054,Boris,Lyon
//     text    (1047, 'Anna', 'Oslo')  (
//
// The row before is at the place that the text's own tokens were copied from. Where it has a value,
// the next one comes behind the last that was taken from the source, where the source says what it
// says before that value.
#include <algorithm>

#include "core/draft_index.h"

namespace fermata {

namespace {

constexpr std::int32_t kLongestValue = 24;
// How far behind the last value the next one may stand, by how many tokens before it are those
// before the value of the row before: one, two, three.
constexpr std::array<std::int32_t, 3> kReach = {48, 96, 1024};

}  // namespace

struct DraftIndex::NewRow {
    Places sources;    // as far as values were taken
    std::int32_t row;  // the token of the row before that comes next
    Draft draft = {.match = 1};
    bool has_value = false;
    bool is_behind = false;  // a value was the last

    std::int32_t size() const { return static_cast<std::int32_t>(draft.tokens.size()); }
    // The first place at or behind `origin`.
    Place* source_of(std::int32_t origin) {
        Place* first = nullptr;
        for (Place& place : sources)
            if (place.last >= origin && (first == nullptr || place.last < first->last))
                first = &place;
        return first;
    }
};

Draft DraftIndex::next_row_by_origin(std::int32_t most) const {
    for (std::size_t place = 0; place < places_.size() && most > 0; ++place) {
        Draft draft = next_row_behind(place, most);
        if (!draft.tokens.empty()) return draft;
    }
    return {};
}

// `place` is in the row before.
Draft DraftIndex::next_row_behind(std::size_t place, std::int32_t most) const {
    const auto [last, since] = places_[place];
    if (last < 0) return {};
    NewRow made{.sources = places_, .row = last + 1};
    made.sources[place] = {};
    if (since > 0) {
        // The text is in a value, which began where the row was left.
        const std::int32_t origin = origin_[at(made.row)];
        Place* const source = origin < 0 ? nullptr : made.source_of(origin);
        if (source == nullptr || source->since > 0) return {};
        if (!take_from_source(made, *source, source->last + 1)) return {};
    }
    // A value may have no tokens, so the rounds are counted, too.
    for (std::int32_t round = 0; round < most && made.size() < most && made.row < size(); ++round) {
        if (take_next_value(made)) continue;
        made.draft.tokens.push_back(history_[at(made.row++)]);
        made.draft.row.push_back(made.is_behind ? RowToken::kBehindValue : RowToken::kText);
        made.is_behind = false;
    }
    if (!made.has_value) return {};
    const std::size_t count = std::min(made.draft.tokens.size(), static_cast<std::size_t>(most));
    made.draft.tokens.resize(count);
    made.draft.row.resize(count);
    return std::move(made.draft);
}

// false: the row before has no value there, or none comes.
bool DraftIndex::take_next_value(NewRow& made) const {
    const std::int32_t origin = origin_[at(made.row)];
    Place* const source = origin < 0 ? nullptr : made.source_of(origin);
    if (source == nullptr) return false;
    const std::int32_t next = counterpart(origin, source->last);
    return next >= 0 && take_from_source(made, *source, next);
}

// Takes the value that begins at `first`: up to what the value of the row before ends with there.
bool DraftIndex::take_from_source(NewRow& made, Place& source, std::int32_t first) const {
    const std::int32_t length = copied_length(made.row);
    const std::int32_t end = origin_[at(made.row)] + length;
    const std::int32_t before = made.size();
    if (end >= size() || !take_until(history_[at(end)], first, made.draft)) return false;
    source = {first + made.size() - before - 1, 0};
    made.row += length;
    made.has_value = made.is_behind = true;
    return true;
}

// Tokens from `token` on that were copied one behind the other.
std::int32_t DraftIndex::copied_length(std::int32_t token) const {
    std::int32_t length = 1;
    while (token + length < size() && length < kLongestValue &&
           origin_[at(token + length)] == origin_[at(token)] + length)
        ++length;
    return length;
}

// The nearest place behind `behind` that comes after the same tokens as `start`; -1: none. Three
// tokens tell more than two, even further away.
std::int32_t DraftIndex::counterpart(std::int32_t start, std::int32_t behind) const {
    for (auto count = static_cast<std::int32_t>(kReach.size()); count > 0; --count) {
        if (start < count) continue;
        const std::int32_t end = std::min(size() - 1, behind + kReach[at(count - 1)]);
        for (std::int32_t place = std::max(behind, start) + 1; place < end; ++place)
            if (is_same(place - 1, start - 1, count)) return place;
    }
    return -1;
}

// Appends the value at `first`, which `end` ends.
bool DraftIndex::take_until(Token end, std::int32_t first, Draft& draft) const {
    const auto begin = history_.begin() + first;
    const auto limit = begin + std::clamp(size() - first, 0, kLongestValue);
    const auto behind = std::find(begin, limit, end);
    if (behind == limit) return false;
    if (begin != behind) draft.row.push_back(RowToken::kFirstOfValue);
    draft.tokens.insert(draft.tokens.end(), begin, behind);
    draft.row.resize(draft.tokens.size(), RowToken::kValue);
    return true;
}

}  // namespace fermata
