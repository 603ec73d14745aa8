// How many passes over the weights a batch costs.
#pragma once

#include <span>

#include "core/backend.h"

namespace fermata {

// Counts as llama.cpp v0.5.0 splits a batch for an attention cache (llama_kv_cache::init_batch).
// Unified: rows in order, micro_batch_rows a pass. Streams: a pass takes equally many rows of each
// slot, from slots with consecutive ids only, until one of them has no more. Rows as
// Backend::decode wants them.
int count_micro_batches(std::span<const BatchRow> rows, const CacheShape& shape);

}  // namespace fermata
