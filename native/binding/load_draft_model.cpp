#include "binding/load_draft_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "llama/mtp_head.h"
#include "llama/mtp_layers.h"

namespace fermata {

namespace {

// Of so many tokens one may be another one there: names that one family of models has and an older
// one has not. It costs a draft where it comes up.
constexpr std::int32_t kOneOf = 100;

bool have_one_vocabulary(const Vocabulary& one, const Vocabulary& other) {
    const std::int32_t common = std::min(one.size(), other.size());
    const std::int32_t most = common / kOneOf;
    if (std::max(one.size(), other.size()) - common > most) return false;
    std::int32_t differ = 0;
    for (Token token = 0; token < common && differ <= most; ++token)
        differ += one.spelled_piece(token) == other.spelled_piece(token) ? 0 : 1;
    return differ <= most;
}

double now_in_milliseconds() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Error refusal(std::string why) {
    return {ErrorCode::kInvalidArgument, std::move(why)};
}

// `option`: that asks for drafts.
std::optional<Error> useless(const std::string& option, const LlamaBackend& engine) {
    const CacheShape shape = engine.shape();
    const bool takes_back = shape.partial_truncate || shape.undo_rows > 0;
    if (takes_back && shape.fixed_chunk == 0) return std::nullopt;
    return refusal(option +
                   " has no use here: drafts are tokens that may be taken back, and the cache of "
                   "this model's recurrent layers cannot be cut back. Leave it out.");
}

// Of the rows that are read in one call of what drafts.
BackendOptions backend_options_of(const BackendOptions& beside) {
    BackendOptions backend;
    backend.layout = beside.layout;
    backend.slot_count = beside.slot_count;
    backend.cells_per_sequence = beside.cells_per_sequence;
    backend.cells_total = beside.cells_total;
    backend.max_rows = backend.micro_batch_rows = DraftModel::kMostRead;
    backend.threads = beside.threads;
    backend.flash_attention = beside.flash_attention;
    backend.forks = false;
    return backend;
}

}  // namespace

Result<std::shared_ptr<const Model>> load_draft_weights(const LoadOptions& options,
                                                        std::function<bool(float)> on_progress,
                                                        bool measures) {
    ModelOptions model_options;
    model_options.path = options.draft_model->model_path;
    model_options.gpu_layers = options.draft_model->gpu_layers;
    // Names of tensors and shares of devices are the engine's model's.
    model_options.placement.devices = options.placement.devices;
    model_options.placement.mmap = options.placement.mmap;
    model_options.placement.mlock = options.placement.mlock;
    model_options.measures = measures;
    model_options.on_progress = std::move(on_progress);
    return Model::load(model_options);
}

BackendOptions draft_backend_options(const LoadOptions& options, const BackendOptions& beside) {
    BackendOptions backend = backend_options_of(beside);
    backend.cells_per_sequence =
        std::min(beside.cells_per_sequence, options.draft_model->context_size);
    return backend;
}

Result<std::unique_ptr<LlamaBackend>> load_draft_model(const LoadOptions& options,
                                                       const Model& model, LlamaBackend& engine,
                                                       std::function<bool(float)> on_progress) {
    if (auto refused = useless("draftModel", engine)) return *refused;
    auto draft = load_draft_weights(options, std::move(on_progress), false);
    if (!draft.ok()) return draft.error();
    if (!have_one_vocabulary(model.vocabulary(), draft.value()->vocabulary()))
        return refusal("draftModel, " + options.draft_model->model_path +
                       ", has another vocabulary than the model. Take a smaller model of the same "
                       "family.");
    auto backend = LlamaBackend::create(
        draft.value(), draft_backend_options(options, options.backend), engine.threads());
    if (!backend.ok()) return backend.error();
    if (!backend.value()->shape().partial_truncate)
        return refusal("draftModel, " + options.draft_model->model_path +
                       ", has a cache that cannot be cut back (recurrent layers, or a sliding "
                       "window): it would read each text anew. Take another one.");
    return backend;
}

std::optional<Error> mtp_refusal(const Model& model) {
    const std::string problem = mtp_problem(model);
    if (problem.empty()) return std::nullopt;
    return refusal("draftMtp is for models with MTP layers: " + problem + ". Leave it out.");
}

BackendOptions mtp_backend_options(const BackendOptions& beside) {
    BackendOptions backend = backend_options_of(beside);
    backend.rope = beside.rope;
    backend.mtp_layers = true;
    return backend;
}

Result<std::unique_ptr<LlamaBackend>> load_mtp_layers(const LoadOptions& options,
                                                      const std::shared_ptr<const Model>& model,
                                                      LlamaBackend& engine) {
    if (auto refused = useless("draftMtp", engine)) return *refused;
    auto backend =
        LlamaBackend::create(model, mtp_backend_options(options.backend), engine.threads());
    if (!backend.ok()) return backend.error();
    if (!backend.value()->shape().partial_truncate)
        return refusal(
            "draftMtp: the MTP layers of this model have a sliding window, and can draft "
            "with kvLayout streams only.");
    return backend;
}

std::unique_ptr<DraftModel> make_draft_model(std::unique_ptr<LlamaBackend> backend,
                                             const LlamaBackend& engine) {
    const std::int32_t known =
        std::min(engine.model().vocabulary().size(), backend->model().vocabulary().size());
    std::unique_ptr<Decoder> decoder;
    if (&backend->model() == &engine.model())
        decoder = std::make_unique<MtpHead>(std::move(backend), engine.hidden_states());
    else
        decoder = std::move(backend);
    return std::make_unique<DraftModel>(std::move(decoder), known, now_in_milliseconds);
}

}  // namespace fermata
