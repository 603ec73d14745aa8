// Where llama.cpp (v0.5.0) puts what it gives for each row of a batch: in the order in which it
// computes rows, which is not that of the batch where slots have unequally many of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend.h"

struct llama_batch;
struct llama_vocab;

namespace fermata {

struct RowSplit {
    CacheShape shape = {};
    bool is_recurrent = false;
    std::uint32_t undo_rows = 0;  // whose states are kept
};

// For each of `rows`, which `batch` has: its place among all that were computed, after llama.cpp
// has put the rows with logits into the batch's order (llama_context::output_reorder, which swaps
// by the places among those and means all). Empty: llama.cpp would refuse the batch.
std::vector<std::size_t> places_of(std::span<const BatchRow> rows, const llama_batch& batch,
                                   const llama_vocab* vocabulary, const RowSplit& split);

}  // namespace fermata
