// From a file to a model with a cache. Runs on any thread; knows no JavaScript.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "llama/llama_backend.h"
#include "llama/model.h"
#include "runtime/engine_loop.h"
#include "runtime/redis.h"

namespace fermata {

// Of the model that drafts.
struct DraftModelOptions {
    std::string model_path;
    std::int32_t gpu_layers = 0;
    std::int32_t context_size = 0;  // longer texts have no drafts of it
};

struct LoadOptions {
    std::string model_path;
    std::int32_t gpu_layers = 0;
    WeightPlacement placement;
    BackendOptions backend;
    LoopConfig loop;
    // For files of sequences, if loop.scheduler.disk_limit > 0: a folder, or a server.
    std::string cache_dir;
    std::optional<RedisAddress> cache_remote;
    std::optional<DraftModelOptions> draft_model;
    bool draft_mtp = false;  // the model's own MTP layers draft; without draft_model
};

struct LoadedEngine {
    std::shared_ptr<const Model> model;
    CacheShape shape;
    std::uint64_t cache_bytes = 0;
    std::unique_ptr<EngineLoop> loop;
};

// `on_progress` is called with 0 .. 1; false cancels. `notify`: see EngineLoop.
Result<LoadedEngine> load_engine(const LoadOptions& options, std::function<bool(float)> on_progress,
                                 std::function<void()> notify);

// What the engine would take with each of these context sizes, of which `options` has one. Reads
// the file's metadata and no weight.
Result<std::vector<MemoryNeeds>> measure_engine(const LoadOptions& options,
                                                const std::vector<std::int32_t>& context_sizes);

// Plans the model's graphs without reading its weights, so that whatever llama.cpp cannot bear in
// this file shows now, be it by the end of the process. `mtp_layers`: of these too. nullopt: it can
// be loaded.
std::optional<Error> probe_model(const std::string& path, bool mtp_layers);

}  // namespace fermata
