#include "llama/embedder.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "llama.h"
#include "llama/log.h"

namespace fermata {

namespace {

std::string refused(const Model& model, enum llama_pooling_type pooling) {
    if (pooling == LLAMA_POOLING_TYPE_RANK) return "The model ranks texts and gives no embeddings.";
    if (pooling == LLAMA_POOLING_TYPE_NONE || pooling == LLAMA_POOLING_TYPE_UNSPECIFIED)
        return "The file of " + model.info().description +
               " names no pooling for embeddings. Choose one with --pooling mean, cls or last.";
    return {};
}

enum llama_pooling_type pooling_of(std::string_view name) {
    if (name == "mean") return LLAMA_POOLING_TYPE_MEAN;
    if (name == "cls") return LLAMA_POOLING_TYPE_CLS;
    if (name == "last") return LLAMA_POOLING_TYPE_LAST;
    return LLAMA_POOLING_TYPE_UNSPECIFIED;
}

}  // namespace

void Embedder::FreeContext::operator()(llama_context* context) const {
    llama_free(context);
}

Embedder::Embedder(std::shared_ptr<const Model> model, std::int32_t max_tokens)
    : model_(std::move(model)), max_tokens_(max_tokens) {}

Embedder::~Embedder() = default;

Result<std::unique_ptr<Embedder>> Embedder::create(std::shared_ptr<const Model> model,
                                                   const EmbedderOptions& options) {
    initialize_llama();
    if (options.max_tokens < 1 || options.threads < 1)
        return Error{ErrorCode::kInvalidArgument, "Tokens and threads must be at least 1."};
    const LogCapture log;
    try {
        std::unique_ptr<Embedder> embedder(new Embedder(std::move(model), options.max_tokens));
        llama_context_params params = llama_context_default_params();
        // A text is one pass: attention without a mask sees all of it at once.
        const auto rows = static_cast<std::uint32_t>(options.max_tokens);
        params.n_ctx = params.n_batch = params.n_ubatch = rows;
        params.n_seq_max = 1;
        params.n_threads = params.n_threads_batch = options.threads;
        params.embeddings = true;
        params.pooling_type = pooling_of(options.pooling);
        embedder->context_.reset(llama_init_from_model(embedder->model_->handle(), params));
        llama_context* context = embedder->context_.get();
        if (context == nullptr) {
            const std::string why = log.errors_or("llama.cpp gave no reason");
            return Error{ErrorCode::kInvalidArgument, "The model cannot embed: " + why};
        }
        if (const std::string why = refused(*embedder->model_, llama_pooling_type(context));
            !why.empty()) {
            return Error{ErrorCode::kInvalidArgument, why};
        }
        embedder->dimensions_ = llama_model_n_embd_out(embedder->model_->handle());
        return embedder;
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfMemory, "The model cannot embed: out of memory."};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kInvalidArgument,
                     std::string("The model cannot embed: ") + failure.what()};
    }
}

std::vector<Token> Embedder::tokenize(const std::string& text) const {
    const llama_vocab* vocab = model_->vocabulary().handle();
    const auto length = static_cast<std::int32_t>(text.size());
    // A byte makes at most one token; two more stand around the text.
    std::vector<Token> tokens(text.size() + 8);
    const std::int32_t count =
        llama_tokenize(vocab, text.data(), length, tokens.data(),
                       static_cast<std::int32_t>(tokens.size()), true, false);
    tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
    return tokens;
}

Result<std::vector<float>> Embedder::embed(std::span<const Token> tokens) {
    const bool fits = !tokens.empty() && tokens.size() <= static_cast<std::size_t>(max_tokens_);
    const bool known = std::ranges::all_of(
        tokens, [this](Token token) { return model_->vocabulary().contains(token); });
    if (!fits || !known)
        return Error{ErrorCode::kInvalidArgument,
                     "The text has no tokens, too many, or unknown ones."};
    const LogCapture log;
    std::vector<Token> batch(tokens.begin(), tokens.end());
    try {
        llama_context* context = context_.get();
        if (llama_memory_t memory = llama_get_memory(context)) llama_memory_clear(memory, true);
        const llama_batch rows =
            llama_batch_get_one(batch.data(), static_cast<std::int32_t>(batch.size()));
        const bool decodes = llama_get_memory(context) != nullptr;
        const std::int32_t status =
            decodes ? llama_decode(context, rows) : llama_encode(context, rows);
        const float* values = status == 0 ? llama_get_embeddings_seq(context, 0) : nullptr;
        if (values == nullptr) {
            return Error{ErrorCode::kModelLoadFailed,
                         "The text was not embedded: " + log.errors_or("llama.cpp gave no reason")};
        }
        std::vector<float> vector(values, values + dimensions_);
        double squares = 0.0;
        for (const float value : vector)
            squares += static_cast<double>(value) * static_cast<double>(value);
        const double length = std::sqrt(squares);
        if (!std::isfinite(length) || length == 0.0)
            return Error{ErrorCode::kModelLoadFailed, "The text's embedding is no vector."};
        for (float& value : vector)
            value = static_cast<float>(static_cast<double>(value) / length);
        return vector;
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kModelLoadFailed,
                     std::string("The text was not embedded: ") + failure.what()};
    }
}

}  // namespace fermata
