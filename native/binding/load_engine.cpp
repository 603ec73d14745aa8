#include "binding/load_engine.h"

#include <array>
#include <utility>

#include "llama/state_fingerprint.h"

namespace fermata {

Result<LoadedEngine> load_engine(const LoadOptions& options,
                                 std::function<bool(float)> on_progress) {
    ModelOptions model_options;
    model_options.path = options.model_path;
    model_options.gpu_layers = options.gpu_layers;
    model_options.on_progress = std::move(on_progress);
    auto model = Model::load(model_options);
    if (!model.ok()) return model.error();
    auto backend = LlamaBackend::create(model.value(), options.backend);
    if (!backend.ok()) return backend.error();
    LoadedEngine loaded{std::move(model.value()), std::move(backend.value()), nullptr};
    if (options.loop.scheduler.disk_limit > 0) {
        const CacheShape shape = loaded.backend->shape();
        const FileKind kind{.fingerprint = state_fingerprint(options.model_path, *loaded.model,
                                                             shape, options.backend),
                            .longest = shape.cells_per_sequence};
        loaded.files = std::make_unique<DiskFiles>(options.cache_dir, kind);
    }
    return loaded;
}

std::optional<Error> probe_model(const std::string& path) {
    LoadOptions options;
    options.model_path = path;
    options.backend.cells_per_sequence = 256;
    options.backend.max_rows = options.backend.micro_batch_rows = 8;
    options.backend.threads = 1;
    auto loaded = load_engine(options, {});
    if (!loaded.ok()) return loaded.error();
    LlamaBackend& backend = *loaded.value().backend;
    const Token token = backend.end_token();
    if (token < 0) return Error{ErrorCode::kModelLoadFailed, "The vocabulary has no end token."};
    // A prompt of several rows and a single row take different kernels.
    const std::array<BatchRow, 3> prompt{
        {{token, 0, 0, false}, {token, 1, 0, false}, {token, 2, 0, true}}};
    const std::array<BatchRow, 1> next{{{token, 3, 0, true}}};
    if (backend.decode(prompt) != DecodeStatus::kOk || backend.decode(next) != DecodeStatus::kOk) {
        return Error{ErrorCode::kModelLoadFailed,
                     "The model does not run: " + backend.last_error()};
    }
    return std::nullopt;
}

}  // namespace fermata
