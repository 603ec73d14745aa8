#include "binding/load_engine.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "binding/load_draft_model.h"
#include "llama/state_fingerprint.h"
#include "runtime/disk_files.h"
#include "runtime/remote_files.h"

namespace fermata {

namespace {

ModelOptions model_options_of(const LoadOptions& options) {
    ModelOptions model_options;
    model_options.path = options.model_path;
    model_options.gpu_layers = options.gpu_layers;
    model_options.placement = options.placement;
    model_options.mtp_layers = options.draft_mtp;
    return model_options;
}

std::unique_ptr<QueuedFiles> make_files(const LoadOptions& options, const Model& model,
                                        const CacheShape& shape) {
    if (options.loop.scheduler.disk_limit <= 0) return nullptr;
    const FileKind kind{
        .fingerprint = state_fingerprint(options.model_path, model, shape, options.backend),
        .longest = shape.cells_per_sequence};
    if (options.cache_remote) return std::make_unique<RemoteFiles>(*options.cache_remote, kind);
    return std::make_unique<DiskFiles>(options.cache_dir, kind);
}

Result<LoadedEngine> load_parts(const LoadOptions& options,
                                const std::function<bool(float)>& on_progress,
                                std::function<void()> notify) {
    ModelOptions model_options = model_options_of(options);
    model_options.on_progress = on_progress;
    auto model = Model::load(model_options);
    if (!model.ok()) return model.error();
    if (options.draft_mtp) {
        if (auto refused = mtp_refusal(*model.value())) return *refused;
    }
    auto backend = LlamaBackend::create(model.value(), options.backend);
    if (!backend.ok()) return backend.error();
    LlamaBackend* const own = backend.value().get();
    std::function<void()> abort_decode = [own] { own->set_abort(); };
    std::unique_ptr<DraftModel> draft_model;
    if (options.draft_model || options.draft_mtp) {
        // The weights that everything waits for are there.
        auto draft = options.draft_mtp
                         ? load_mtp_layers(options, model.value(), *own)
                         : load_draft_model(options, *model.value(), *own,
                                            [&on_progress](float) { return on_progress(1.0f); });
        if (!draft.ok()) return draft.error();
        abort_decode = [own, its = draft.value().get()] {
            own->set_abort();
            its->set_abort();
        };
        draft_model = make_draft_model(std::move(draft.value()), *own);
    }
    LoadedEngine loaded{.model = std::move(model.value()),
                        .shape = own->shape(),
                        .cache_bytes = own->cache_bytes(),
                        .loop = nullptr};
    auto files = make_files(options, *loaded.model, loaded.shape);
    loaded.loop = std::make_unique<EngineLoop>(std::move(backend.value()), options.loop,
                                               std::move(notify), std::move(abort_decode),
                                               std::move(files), std::move(draft_model));
    return loaded;
}

}  // namespace

Result<std::vector<MemoryNeeds>> measure_engine(const LoadOptions& options,
                                                const std::vector<std::int32_t>& context_sizes) {
    ModelOptions model_options = model_options_of(options);
    model_options.measures = true;
    auto model = Model::load(model_options);
    if (!model.ok()) return model.error();
    if (options.draft_mtp) {
        if (auto refused = mtp_refusal(*model.value())) return *refused;
    }
    std::shared_ptr<const Model> draft;
    if (options.draft_model) {
        auto loaded = load_draft_weights(options, {}, true);
        if (!loaded.ok()) return loaded.error();
        draft = std::move(loaded.value());
    }
    std::vector<MemoryNeeds> all;
    for (const std::int32_t size : context_sizes) {
        BackendOptions backend = options.backend;
        // The pool of a unified cache grows with its sequences.
        backend.cells_total =
            options.backend.cells_total / options.backend.cells_per_sequence * std::int64_t{size};
        backend.cells_per_sequence = size;
        auto needs = LlamaBackend::measure(*model.value(), backend);
        if (!needs.ok()) return needs.error();
        all.push_back(std::move(needs.value()));
        if (draft == nullptr && !options.draft_mtp) continue;
        auto more = options.draft_mtp
                        ? LlamaBackend::measure(*model.value(), mtp_backend_options(backend))
                        : LlamaBackend::measure(*draft, draft_backend_options(options, backend));
        if (!more.ok()) return more.error();
        all.back().add(more.value());
    }
    return all;
}

Result<LoadedEngine> load_engine(const LoadOptions& options, std::function<bool(float)> on_progress,
                                 std::function<void()> notify) {
    try {
        return load_parts(options, on_progress, std::move(notify));
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfMemory, "The engine cannot be loaded: out of memory."};
    } catch (const std::system_error& failure) {
        if (failure.code() == std::errc::resource_unavailable_try_again) return no_threads();
        return Error{ErrorCode::kModelLoadFailed, failure.what()};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kModelLoadFailed, failure.what()};
    }
}

std::optional<Error> probe_model(const std::string& path, bool mtp_layers) {
    ModelOptions options;
    options.path = path;
    options.measures = true;
    options.mtp_layers = mtp_layers;
    auto model = Model::load(options);
    if (!model.ok()) return model.error();
    BackendOptions backend;
    backend.cells_per_sequence = 256;
    backend.max_rows = backend.micro_batch_rows = 8;
    // A context plans the graphs of a prompt and of a single row.
    auto needs = LlamaBackend::measure(*model.value(), backend);
    if (!needs.ok()) return needs.error();
    if (mtp_layers) {
        if (auto refused = mtp_refusal(*model.value())) return refused;
        auto more = LlamaBackend::measure(*model.value(), mtp_backend_options(backend));
        if (!more.ok()) return more.error();
    }
    if (model.value()->vocabulary().end_token() < 0)
        return Error{ErrorCode::kModelLoadFailed, "The vocabulary has no end token."};
    return std::nullopt;
}

}  // namespace fermata
