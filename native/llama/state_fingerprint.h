// What saved cells depend on, in one number: cells of another model file, cache or build mean
// something else, or cannot be read.
#pragma once

#include <cstdint>
#include <string>

#include "llama/llama_backend.h"
#include "llama/model.h"

namespace fermata {

// Of the file and its other parts, sizes, metadata and pieces of the weights. Reads some MiB.
std::uint64_t state_fingerprint(const std::string& model_path, const Model& model,
                                const CacheShape& shape, const BackendOptions& options);

}  // namespace fermata
