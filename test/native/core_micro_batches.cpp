#include "core/micro_batches.h"

#include <algorithm>
#include <map>
#include <random>

#include "check.h"

using namespace fermata;

namespace {

struct Share {
    SlotId slot;
    int rows;
};

std::vector<BatchRow> batch(const std::vector<Share>& shares) {
    std::vector<BatchRow> rows;
    for (const Share& share : shares)
        for (int i = 0; i < share.rows; ++i)
            rows.push_back({.token = 1, .position = i, .slot = share.slot});
    return rows;
}

CacheShape shape(CacheLayout layout, int micro_batch_rows) {
    return {.layout = layout,
            .slot_count = 64,
            .cells_per_sequence = 4096,
            .max_rows = 2048,
            .micro_batch_rows = micro_batch_rows};
}

int streams(const std::vector<Share>& shares, int micro_batch_rows = 512) {
    return count_micro_batches(batch(shares), shape(CacheLayout::kStreams, micro_batch_rows));
}

// llama_batch_allocr::split_equal(n_ubatch, true, 0), row by row as its source does it.
int split_equal_passes(const std::vector<BatchRow>& rows, std::size_t n_ubatch) {
    std::vector<bool> used(rows.size());
    std::map<SlotId, std::vector<std::size_t>> rows_of;
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows_of[rows[i].slot].push_back(i);
    for (int passes = 0;; ++passes) {
        std::vector<SlotId> slots;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (used[i] || std::ranges::count(slots, rows[i].slot) > 0) continue;
            if (!slots.empty() && rows[i].slot != slots.back() + 1) continue;
            slots.push_back(rows[i].slot);
            if (slots.size() > n_ubatch) break;
        }
        if (slots.empty()) return passes;
        std::vector<std::size_t> next(slots.size());
        for (std::size_t s = 0; s < slots.size(); ++s)
            while (used[rows_of[slots[s]][next[s]]])
                ++next[s];
        for (std::size_t taken = 0;;) {
            bool can_expand = true;
            for (std::size_t s = 0; s < slots.size(); ++s)
                if (next[s] >= rows_of[slots[s]].size()) can_expand = false;
            if (!can_expand) break;
            for (std::size_t s = 0; s < slots.size(); ++s)
                used[rows_of[slots[s]][next[s]++]] = true;
            if ((++taken + 1) * slots.size() > n_ubatch) break;
        }
    }
}

}  // namespace

TEST(adjacent_slots_share_a_pass) {
    CHECK_EQ(streams({{0, 1}, {1, 1}, {2, 1}}), 1);
    CHECK_EQ(streams({{0, 1}, {2, 1}, {5, 1}}), 3);
    CHECK_EQ(streams({{0, 1}, {1, 1}, {4, 1}, {5, 1}}), 2);
    CHECK_EQ(streams({}), 0);
}

TEST(a_prefill_chunk_costs_one_more_pass_than_the_decode_rows_beside_it) {
    CHECK_EQ(streams({{0, 1}, {1, 1}, {2, 128}}), 2);
    CHECK_EQ(streams({{0, 64}, {1, 64}, {2, 64}}), 1);
    CHECK_EQ(streams({{0, 300}, {1, 300}}), 2);  // 256 of each, then 44
}

TEST(unified_rows_are_cut_in_order) {
    CHECK_EQ(
        count_micro_batches(batch({{0, 1}, {2, 1}, {5, 1}}), shape(CacheLayout::kUnified, 512)), 1);
    CHECK_EQ(count_micro_batches(batch({{0, 512}}), shape(CacheLayout::kUnified, 512)), 1);
    CHECK_EQ(count_micro_batches(batch({{0, 512}, {1, 1}}), shape(CacheLayout::kUnified, 512)), 2);
}

TEST(one_stream_is_split_as_unified) {
    CacheShape one = shape(CacheLayout::kStreams, 128);
    one.slot_count = 1;
    CHECK_EQ(count_micro_batches(batch({{0, 300}}), one), 3);
}

TEST(random_batches_agree_with_the_source) {
    std::mt19937 random(7);
    for (int round = 0; round < 5000; ++round) {
        std::vector<Share> shares;
        for (SlotId slot = 0; slot < 24; ++slot)
            if (random() % 3 != 0)
                shares.push_back({slot, random() % 4 == 0 ? int(random() % 40) + 1 : 1});
        const int micro_batch_rows = static_cast<int>(random() % 40) + 1;
        CHECK_EQ(streams(shares, micro_batch_rows),
                 split_equal_passes(batch(shares), static_cast<std::size_t>(micro_batch_rows)));
    }
}

TEST_MAIN()
