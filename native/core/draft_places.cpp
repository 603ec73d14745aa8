// Places that the text was copied from, a value here and a value there: the source of a form, and
// the row before. A token alone says little, but near such a place it tells where the text goes on.
#include <algorithm>

#include "core/draft_index.h"

namespace fermata {

namespace {

constexpr std::int32_t kNear = 48;
// A place from which nothing was copied for more tokens is forgotten.
constexpr std::int32_t kLongestGap = 32;
// A longer match tells no more about where a token came from.
constexpr std::int32_t kTellingMatch = 8;

}  // namespace

std::vector<Draft> DraftIndex::nearby(std::int32_t most) const {
    std::vector<Draft> drafts;
    for (const Place& place : places_) {
        if (place.last < 0 || most <= 0) continue;
        const bool is_copying = place.since == 0;
        const std::int32_t last = is_copying ? place.last : find_near(place.last, size() - 1, 1);
        if (last < 0) continue;
        drafts.push_back(from(last, most));
        drafts.back().match = common(last, size() - 1, kLongestMatch);
    }
    return drafts;
}

// The text has said the token at index `token`. It came from the place that has more tokens before
// it in common with the text, and so did those; of two, from the first.
void DraftIndex::advance(std::int32_t token) {
    std::int32_t length = 0, origin = -1, alone = -1;
    for (Place& place : places_) {
        if (place.last >= 0) place = advanced(place, token);
        if (place.last < 0) continue;
        const bool is_copying = place.since == 0;
        if (!is_copying && alone < 0) alone = find_near(place.last, token, 1);
        const std::int32_t same = is_copying ? common(place.last, token, kTellingMatch) : 0;
        if (same > length || (same == length && place.last < origin)) {
            length = same;
            origin = place.last;
        }
    }
    if (length == 0) origin_[at(token)] = alone;
    for (std::int32_t i = 0; i < length; ++i)
        origin_[at(token - i)] = origin - i;
}

DraftIndex::Place DraftIndex::advanced(Place place, std::int32_t token) const {
    const std::int32_t next = place.last + 1;
    if (place.since == 0 && next < token && history_[at(next)] == history_[at(token)])
        return {next, 0};
    place.since += 1;
    const std::int32_t found = place.since == 1 ? -1 : find_near(place.last, token, 2);
    if (found >= 0) return {found, 0};
    return place.since > kLongestGap ? Place{} : place;
}

// Where the `count` tokens up to `token` stand near `around`: the next place behind it, else the
// last before it; -1: nowhere.
std::int32_t DraftIndex::find_near(std::int32_t around, std::int32_t token,
                                   std::int32_t count) const {
    const std::int32_t end = std::min(around + kNear, token - count);
    for (std::int32_t last = around + count; last <= end; ++last)
        if (is_same(last, token, count)) return last;
    const std::int32_t first = std::max(around - kNear, count - 1);
    for (std::int32_t last = around; last >= first; --last)
        if (is_same(last, token, count)) return last;
    return -1;
}

// Of the `count` tokens that end there.
bool DraftIndex::is_same(std::int32_t last, std::int32_t other, std::int32_t count) const {
    const auto end = history_.begin() + last + 1;
    return std::equal(end - count, end, history_.begin() + other + 1 - count);
}

// In place of the one that was left longest ago.
void DraftIndex::remember(std::int32_t source) {
    const auto is_it = [&](const Place& place) { return place.last == source && place.since == 0; };
    if (std::ranges::any_of(places_, is_it)) return;
    const auto age = [](const Place& place) {
        return place.last < 0 ? kLongestGap + 1 : place.since;
    };
    *std::ranges::max_element(places_, {}, age) = {source, 0};
}

}  // namespace fermata
