#include "llama/embedder.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <exception>

#include "llama.h"
#include "llama/log.h"

namespace fermata {

namespace {

std::string refused(const Model& model, enum llama_pooling_type pooling, bool ranks) {
    if (ranks) return {};
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

// A character that the texts do not have, of U+E000 to U+EFFF, for private use; "": they have all.
std::string guard_for(std::string_view one, std::string_view other) {
    std::bitset<4096> used;
    for (const std::string_view text : {one, other}) {
        for (std::size_t at = text.find('\xEE'); at != text.npos; at = text.find('\xEE', at + 1)) {
            if (at + 2 < text.size())
                used.set((text[at + 1] & 0x3Fu) << 6 | (text[at + 2] & 0x3Fu));
        }
    }
    unsigned place = 0;
    while (place < used.size() && used[place])
        ++place;
    if (place == used.size()) return {};
    return {'\xEE', static_cast<char>(0x80u | place >> 6),
            static_cast<char>(0x80u | (place & 0x3Fu))};
}

// A guard before and after every character.
std::string guarded(std::string_view text, const std::string& guard) {
    std::string result = guard;
    for (std::size_t at = 0; at < text.size(); ++at) {
        result += text[at];
        const bool ends = at + 1 == text.size() || (text[at + 1] & '\xC0') != '\x80';
        if (ends) result += guard;
    }
    return result;
}

// Each text is put where its name stands in the form, once.
std::string filled(std::string_view form, std::string_view query, std::string_view document) {
    std::string result;
    while (!form.empty()) {
        const bool is_query = form.starts_with("{query}");
        if (is_query || form.starts_with("{document}")) {
            result += is_query ? query : document;
            form.remove_prefix(is_query ? 7 : 10);
        } else {
            result += form.front();
            form.remove_prefix(1);
        }
    }
    return result;
}

}  // namespace

void Embedder::FreeContext::operator()(llama_context* context) const {
    llama_free(context);
}

Embedder::Embedder(std::shared_ptr<const Model> model, const EmbedderOptions& options)
    : model_(std::move(model)), max_tokens_(options.max_tokens), ranks_(options.ranks) {}

Embedder::~Embedder() {
    if (threads_ != nullptr) threads_->leave(context_.get());
}

Result<std::unique_ptr<Embedder>> Embedder::create(std::shared_ptr<const Model> model,
                                                   const EmbedderOptions& options) {
    initialize_llama();
    if (options.max_tokens < 1 || options.threads < 1)
        return Error{ErrorCode::kInvalidArgument, "Tokens and threads must be at least 1."};
    const LogCapture log;
    try {
        std::unique_ptr<Embedder> embedder(new Embedder(std::move(model), options));
        llama_context_params params = llama_context_default_params();
        // A text is one pass: attention without a mask sees all of it at once.
        const auto rows = static_cast<std::uint32_t>(options.max_tokens);
        params.n_ctx = params.n_batch = params.n_ubatch = rows;
        params.n_seq_max = 1;
        params.n_threads = params.n_threads_batch = options.threads;
        params.embeddings = true;
        params.pooling_type = options.ranks ? LLAMA_POOLING_TYPE_RANK : pooling_of(options.pooling);
        embedder->context_.reset(llama_init_from_model(embedder->model_->handle(), params));
        llama_context* context = embedder->context_.get();
        if (context == nullptr) {
            const std::string why = log.errors_or("llama.cpp gave no reason");
            return Error{ErrorCode::kInvalidArgument, "The model cannot embed: " + why};
        }
        if (const std::string why =
                refused(*embedder->model_, llama_pooling_type(context), options.ranks);
            !why.empty()) {
            return Error{ErrorCode::kInvalidArgument, why};
        }
        const llama_model* handle = embedder->model_->handle();
        embedder->dimensions_ = options.ranks
                                    ? static_cast<std::int32_t>(llama_model_n_cls_out(handle))
                                    : llama_model_n_embd_out(handle);
        embedder->find_frame();
        // Whichever thread of libuv's has the call computes.
        auto threads = ComputeThreads::start({.most = options.threads, .placed = false});
        if (!threads.ok()) return threads.error();
        embedder->threads_ = std::move(threads.value());
        embedder->threads_->join(context);
        return embedder;
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfMemory, "The model cannot embed: out of memory."};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kInvalidArgument,
                     std::string("The model cannot embed: ") + failure.what()};
    }
}

// llama.cpp ends the process where the vocabulary has not what it wants around a text.
void Embedder::find_frame() {
    const llama_vocab* vocab = model_->vocabulary().handle();
    std::array<Token, 2> frame{};
    const std::int32_t count = llama_tokenize(vocab, "", 0, frame.data(),
                                              static_cast<std::int32_t>(frame.size()), true, false);
    const std::int32_t before =
        count > 1 ? 1 : std::min(count, llama_vocab_get_add_bos(vocab) ? 1 : 0);
    before_.assign(frame.begin(), frame.begin() + std::max(before, 0));
    behind_.assign(frame.begin() + std::max(before, 0), frame.begin() + std::max(count, 0));
}

Result<std::vector<Token>> Embedder::tokenize(const std::string& text) const {
    auto tokens = model_->tokenizer().tokenize_text(text);
    if (!tokens.ok()) return tokens;
    tokens.value().insert(tokens.value().begin(), before_.begin(), before_.end());
    tokens.value().insert(tokens.value().end(), behind_.begin(), behind_.end());
    return tokens;
}

Result<std::vector<Token>> Embedder::tokenize_pair(const std::string& query,
                                                   const std::string& document) const {
    const char* form = llama_model_chat_template(model_->handle(), "rerank");
    if (form != nullptr) {
        const std::string guard = guard_for(query, document);
        if (guard.empty())
            return Error{ErrorCode::kInvalidArgument,
                         "The texts have every character from U+E000 to U+EFFF: leave one out."};
        return model_->tokenizer().tokenize(
            filled(form, guarded(query, guard), guarded(document, guard)), guard, false);
    }
    // As BERT reads a pair: [CLS] query [SEP] document [SEP].
    auto first = model_->tokenizer().tokenize_text(query);
    auto second = model_->tokenizer().tokenize_text(document);
    if (!first.ok()) return first.error();
    if (!second.ok()) return second.error();
    const llama_vocab* vocab = model_->vocabulary().handle();
    const Token end = llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL ? llama_vocab_sep(vocab)
                                                                 : llama_vocab_eos(vocab);
    std::vector<Token> tokens;
    const auto add = [&](bool wanted, Token token) {
        if (wanted && token != LLAMA_TOKEN_NULL) tokens.push_back(token);
    };
    const auto add_all = [&](const std::vector<Token>& some) {
        tokens.insert(tokens.end(), some.begin(), some.end());
    };
    add(llama_vocab_get_add_bos(vocab), llama_vocab_bos(vocab));
    add_all(first.value());
    add(llama_vocab_get_add_eos(vocab), end);
    add(llama_vocab_get_add_sep(vocab), llama_vocab_sep(vocab));
    add_all(second.value());
    add(llama_vocab_get_add_eos(vocab), end);
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
        threads_->adapt(context);
        const std::int32_t status =
            decodes ? llama_decode(context, rows) : llama_encode(context, rows);
        const float* values = status == 0 ? llama_get_embeddings_seq(context, 0) : nullptr;
        if (values == nullptr) {
            return Error{ErrorCode::kModelLoadFailed,
                         "The text was not embedded: " + log.errors_or("llama.cpp gave no reason")};
        }
        std::vector<float> vector(values, values + dimensions_);
        if (ranks_) return vector;
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
