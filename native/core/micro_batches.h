// How many passes over the weights a batch costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend.h"

namespace fermata {

struct SlotRows {
    SlotId slot = kNoSlot;
    std::int64_t rows = 0;
};

struct Pass {
    std::int64_t slots = 0;  // that have rows in it; unified: in the whole batch
    std::int64_t rows = 0;
};

// Splits as llama.cpp v0.5.0 does for an attention cache (llama_kv_cache::init_batch). Unified:
// rows in order, micro_batch_rows a pass. Streams: a pass takes equally many rows of each slot,
// from slots with consecutive ids only, until one of them has no more. Slots ascending, with 1 row
// or more each.
std::vector<Pass> split_into_passes(std::vector<SlotRows> batch, const CacheShape& shape);

// Passes of these rows, as Backend::decode wants them.
int count_micro_batches(std::span<const BatchRow> rows, const CacheShape& shape);

}  // namespace fermata
