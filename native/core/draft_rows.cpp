// Drafts of a next row. Who writes the rows of a source in another form repeats the text around the
// values and takes the values in order:
//
//     source  {"id":"a-17","owner":"x"},{"id":"a-34","owner":"y"}
//     text    add(id=a-17, owner=x)  add(id=
//
// What comes is what stood there a row before, a-17, but of the next row: where the source says a
// second time what it says before a-17. Behind it comes the text of the row before, up to its next
// value.
#include <algorithm>

#include "core/draft_index.h"

namespace fermata {

namespace {

constexpr std::int32_t kLongestValue = 24;
// How far behind a value the one of the next row may stand.
constexpr std::int32_t kLongestRow = 1024;

}  // namespace

Draft DraftIndex::next_row(const Draft& proposed, std::int32_t most) const {
    if (proposed.match == 0) return {};
    Draft draft{.match = proposed.match, .source = proposed.source};
    std::int32_t row = proposed.source + 1;
    bool has_value = false;
    bool is_behind = false;
    const auto take = [&](const Value& value, std::int32_t next) {
        if (!take_until(history_[at(value.start + value.length)], next, draft)) return false;
        row = value.copy + value.length;
        return has_value = is_behind = true;
    };
    if (const auto value = value_before(proposed)) take(*value, row);
    const auto is_open = [&] {
        return static_cast<std::int32_t>(draft.tokens.size()) < most && row < size();
    };
    // A value may have no tokens, so the rounds are counted, too.
    for (std::int32_t round = 0; round < most && is_open(); ++round) {
        const auto value = value_at(row);
        const std::int32_t next = value ? after_run(value->start - 1) : -1;
        if (next >= 0 && next != row && take(*value, next)) continue;
        draft.tokens.push_back(history_[at(row++)]);
        draft.row.push_back(is_behind ? RowToken::kBehindValue : RowToken::kText);
        is_behind = false;
    }
    const auto count = std::min(draft.tokens.size(), static_cast<std::size_t>(most));
    draft.tokens.resize(count);
    draft.row.resize(count);
    return has_value && draft.tokens != proposed.tokens ? draft : Draft{};
}

// The tokens from `copy` on, if they stood somewhere before.
std::optional<DraftIndex::Value> DraftIndex::value_at(std::int32_t copy) const {
    const std::int32_t last = copy + kLeastMatch - 1;
    if (last >= size() - 1) return std::nullopt;
    const std::int32_t start = earlier_run(last) - kLeastMatch + 1;
    if (start < kLeastMatch) return std::nullopt;
    return value_of(start, copy);
}

// The text ends in the middle of a value: the row before it in the source has what was taken in its
// place, and behind that the text of the row goes on.
std::optional<DraftIndex::Value> DraftIndex::value_before(const Draft& proposed) const {
    const std::int32_t context = proposed.source - proposed.match;
    if (context < kLeastMatch - 1 || proposed.match == kLongestMatch) return std::nullopt;
    const std::int32_t start = earlier_run(context) + 1;
    if (start == 0 || start + kLeastMatch > context) return std::nullopt;
    const Token left = history_[at(size() - 1 - proposed.match)];
    const std::int32_t last = start + kLeastMatch - 1;
    std::int32_t copied = latest_[bucket(last)];
    for (std::int32_t i = 0; copied > proposed.source + kLeastMatch && i < kMostCandidates; ++i) {
        const std::int32_t copy = copied - kLeastMatch + 1;
        if (is_same(copied, last, kLeastMatch) && history_[at(copy - 1)] == left)
            return value_of(start, copy);
        copied = earlier_[at(copied)];
    }
    return std::nullopt;
}

// As long as both agree; nothing if that is to the end of the text, or longer than a value is.
std::optional<DraftIndex::Value> DraftIndex::value_of(std::int32_t start, std::int32_t copy) const {
    std::int32_t length = 0;
    while (copy + length < size() && start + length < copy && length <= kLongestValue &&
           history_[at(start + length)] == history_[at(copy + length)])
        ++length;
    if (copy + length >= size() || length < kLeastMatch || length > kLongestValue)
        return std::nullopt;
    return Value{start, copy, length};
}

// Where the run that ends at `last` ended before, the latest; -1: nowhere.
std::int32_t DraftIndex::earlier_run(std::int32_t last) const {
    std::int32_t other = earlier_[at(last)];
    for (std::int32_t i = 0; other >= 0 && i < kMostCandidates; ++i) {
        if (is_same(last, other, kLeastMatch)) return other;
        other = earlier_[at(other)];
    }
    return -1;
}

// What stands behind the next run like the one that ends at `last`; -1: none is near.
std::int32_t DraftIndex::after_run(std::int32_t last) const {
    const std::int32_t end = std::min(size() - 1, last + kLongestRow);
    for (std::int32_t other = last + 1; other < end; ++other)
        if (is_same(last, other, kLeastMatch)) return other + 1;
    return -1;
}

}  // namespace fermata
