#include "binding/load_engine.h"

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

Result<LoadedEngine> load_engine(const LoadOptions& options,
                                 std::function<bool(float)> on_progress) {
    ModelOptions model_options = model_options_of(options);
    model_options.on_progress = on_progress;
    auto model = Model::load(model_options);
    if (!model.ok()) return model.error();
    if (options.draft_mtp) {
        if (auto refused = mtp_refusal(*model.value())) return *refused;
    }
    auto backend = LlamaBackend::create(model.value(), options.backend);
    if (!backend.ok()) return backend.error();
    LoadedEngine loaded{.model = std::move(model.value()),
                        .backend = std::move(backend.value()),
                        .files = nullptr,
                        .draft_model = nullptr,
                        .abort_decode = {}};
    LlamaBackend* const own = loaded.backend.get();
    loaded.abort_decode = [own] { own->set_abort(); };
    if (options.draft_model || options.draft_mtp) {
        // The weights that everything waits for are there.
        auto draft = options.draft_mtp
                         ? load_mtp_layers(options, loaded.model, *own)
                         : load_draft_model(options, *loaded.model, *own,
                                            [&on_progress](float) { return on_progress(1.0f); });
        if (!draft.ok()) return draft.error();
        LlamaBackend* const its = draft.value().get();
        loaded.abort_decode = [own, its] {
            own->set_abort();
            its->set_abort();
        };
        loaded.draft_model = make_draft_model(std::move(draft.value()), *own);
    }
    if (options.loop.scheduler.disk_limit > 0) {
        const CacheShape shape = loaded.backend->shape();
        const FileKind kind{.fingerprint = state_fingerprint(options.model_path, *loaded.model,
                                                             shape, options.backend),
                            .longest = shape.cells_per_sequence};
        if (options.cache_remote)
            loaded.files = std::make_unique<RemoteFiles>(*options.cache_remote, kind);
        else
            loaded.files = std::make_unique<DiskFiles>(options.cache_dir, kind);
    }
    return loaded;
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
