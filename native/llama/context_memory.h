// How much memory a context will take, before it is created: memory is committed lazily, so a
// context that does not fit is created all the same and the process is killed later.
#pragma once

#include <cstdint>
#include <optional>

#include "core/backend.h"
#include "llama/model.h"

namespace fermata {

// kAuto: wherever the device that holds the cache can compute it.
enum class FlashAttention : std::uint8_t { kOff, kOn, kAuto };
enum class KvType : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0 };

struct ContextMemory {
    std::uint64_t cache_bytes = 0;    // keys and values of all cells
    std::uint64_t compute_bytes = 0;  // activations, attention scores, logits: an estimate
    std::uint64_t host_bytes = 0;     // of both, what is not on a device
};

// Takes the heads of the first layer for all layers, and no recurrent state into account.
ContextMemory estimate_context_memory(const ModelShape& model, std::int32_t vocabulary_size,
                                      const CacheShape& cache, KvType keys, KvType values,
                                      FlashAttention flash_attention);

// Bytes that this process may still commit, by the machine and by its control group (Linux), or
// that the machine has free (macOS). nullopt: unknown.
std::optional<std::uint64_t> available_memory();

}  // namespace fermata
