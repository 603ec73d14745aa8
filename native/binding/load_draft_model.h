// What drafts beside an engine's model: a smaller one, or the model's own MTP layers.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "binding/load_engine.h"
#include "core/draft_model.h"

namespace fermata {

// `options.draft_model` is set, here and in the next two. `measures`: see ModelOptions.
Result<std::shared_ptr<const Model>> load_draft_weights(const LoadOptions& options,
                                                        std::function<bool(float)> on_progress,
                                                        bool measures);

// Its cache, beside one of `beside`.
BackendOptions draft_backend_options(const LoadOptions& options, const BackendOptions& beside);

// Errors: also invalid_argument (another vocabulary, a cache that cannot be cut back, be it of
// `engine`).
Result<std::unique_ptr<LlamaBackend>> load_draft_model(const LoadOptions& options,
                                                       const Model& model, LlamaBackend& engine,
                                                       std::function<bool(float)> on_progress);

// nullopt: it has MTP layers that can draft.
std::optional<Error> mtp_refusal(const Model& model);

// Their cache, beside one of `beside`, which keeps what they start from.
BackendOptions mtp_backend_options(const BackendOptions& beside);

// Of `model`, for which there is no mtp_refusal(). Errors: also invalid_argument (a cache that
// cannot be cut back).
Result<std::unique_ptr<LlamaBackend>> load_mtp_layers(const LoadOptions& options,
                                                      const std::shared_ptr<const Model>& model,
                                                      LlamaBackend& engine);

// `backend`: of one of them.
std::unique_ptr<DraftModel> make_draft_model(std::unique_ptr<LlamaBackend> backend,
                                             const LlamaBackend& engine);

}  // namespace fermata
