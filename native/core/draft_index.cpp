#include "core/draft_index.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace fermata {

namespace {

constexpr std::size_t kFewestBuckets = 256;
// The source of a shorter match is as doubtful as one from which the text differed once.
constexpr std::int32_t kTrustedMatch = 10;
// Tokens that a text says between two proposals, at most.
constexpr std::size_t kMostSaid = 64;

}  // namespace

void DraftIndex::append(std::span<const Token> tokens) {
    const std::int32_t known = std::max(size() - 1, kLeastMatch - 1);
    history_.insert(history_.end(), tokens.begin(), tokens.end());
    earlier_.resize(history_.size(), -1);
    origin_.resize(history_.size(), -1);
    std::int32_t first = known;
    if (history_.size() > latest_.size()) {
        latest_.assign(std::max(kFewestBuckets, std::bit_ceil(history_.size())), -1);
        first = kLeastMatch - 1;
    }
    for (std::int32_t last = first; last < size() - 1; ++last)
        enter(last);
    // More was read, not said.
    if (tokens.size() > kMostSaid) places_ = {};
    for (std::size_t behind = tokens.size(); behind > 0 && tokens.size() <= kMostSaid; --behind)
        advance(size() - static_cast<std::int32_t>(behind));
    if (followed_ < 0 || tokens.empty()) return;
    followed_ += static_cast<std::int32_t>(tokens.size());
    misses_ = history_[at(followed_)] == history_.back() ? 0 : misses_ + 1;
    if (misses_ > kMostMisses) followed_ = -1;
}

void DraftIndex::shorten(std::int32_t size) {
    followed_ = -1;
    places_ = {};
    while (this->size() > std::max(size, 0)) {
        const std::int32_t last = this->size() - 2;
        if (last >= kLeastMatch - 1) latest_[bucket(last)] = earlier_[at(last)];
        history_.pop_back();
    }
    earlier_.resize(history_.size());
    origin_.resize(history_.size());
}

std::size_t DraftIndex::bucket(std::int32_t last) const {
    std::uint64_t hash = 0;
    for (std::int32_t i = last - kLeastMatch + 1; i <= last; ++i)
        hash = (hash ^ static_cast<std::uint32_t>(history_[at(i)])) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(hash >> 32) & (latest_.size() - 1);
}

void DraftIndex::enter(std::int32_t last) {
    std::int32_t& latest = latest_[bucket(last)];
    earlier_[at(last)] = latest;
    latest = last;
}

// How many tokens up to `last` are those up to `end`; `most` of them are compared.
std::int32_t DraftIndex::common(std::int32_t last, std::int32_t end, std::int32_t most) const {
    most = std::min(last + 1, most);
    std::int32_t count = 0;
    while (count < most && history_[at(last - count)] == history_[at(end - count)])
        ++count;
    return count;
}

Draft DraftIndex::propose(std::int32_t most) const {
    Draft draft;
    if (size() <= kLeastMatch || most <= 0) return draft;
    std::int32_t best = -1;
    std::int32_t last = latest_[bucket(size() - 1)];
    for (std::int32_t i = 0; last >= 0 && i < kMostCandidates && draft.match < kLongestMatch; ++i) {
        const std::int32_t match = common(last, size() - 1, kLongestMatch);
        if (match >= kLeastMatch && match > draft.match) {
            draft.match = match;
            best = last;
        }
        last = earlier_[at(last)];
    }
    if (best < 0) return draft;
    const std::int32_t match = draft.match;
    draft = from(best, most);
    draft.match = match;
    return draft;
}

Draft DraftIndex::go_on(std::int32_t most) const {
    if (followed_ < 0 || most <= 0) return {};
    Draft draft = from(followed_, most);
    draft.misses = misses_;
    return draft;
}

void DraftIndex::follow(const Draft& draft) {
    if (draft.source < 0) return;
    if (draft.match >= kLeastMatch) remember(draft.source);
    followed_ = draft.source;
    misses_ = draft.match > 0 && draft.match < kTrustedMatch ? 1 : draft.misses;
}

std::vector<Draft> DraftIndex::proposals(std::int32_t most) const {
    std::vector<Draft> drafts{propose(most)};
    for (Draft& draft : nearby(most))
        drafts.push_back(std::move(draft));
    drafts.push_back(go_on(most));
    drafts.push_back(next_row(drafts.front(), most));
    drafts.push_back(next_row_by_origin(most));
    return drafts;
}

// What came behind `source`.
Draft DraftIndex::from(std::int32_t source, std::int32_t most) const {
    Draft draft;
    draft.source = source;
    const std::int32_t period = size() - 1 - source;
    for (std::int32_t i = 0; i < most; ++i) {
        draft.tokens.push_back(i < period ? history_[at(source + 1 + i)]
                                          : draft.tokens[at(i - period)]);
    }
    return draft;
}

}  // namespace fermata
