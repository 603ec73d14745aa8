// The model that drafts, beside an engine's own.
#pragma once

#include <functional>
#include <memory>

#include "binding/load_engine.h"
#include "core/draft_model.h"

namespace fermata {

// `options.draft_model` is set, here and below. `measures`: see ModelOptions.
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

// `backend` is of `draft`.
std::unique_ptr<DraftModel> make_draft_model(std::unique_ptr<LlamaBackend> backend,
                                             const Model& model, const Model& draft);

}  // namespace fermata
