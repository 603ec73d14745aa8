// Texts to vectors: a model of its own beside the one that generates, pooled as its file or its
// caller says.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/types.h"
#include "llama/model.h"

struct llama_context;

namespace fermata {

struct EmbedderOptions {
    std::int32_t max_tokens = 512;  // of one text
    std::int32_t threads = 1;
    // "mean", "cls" or "last"; "": as the file says.
    std::string pooling;
};

class Embedder {
   public:
    // `model` was loaded with ModelOptions::embeds. Errors: invalid_argument (neither the file nor
    // `options` names a pooling that gives one vector a text), out_of_memory.
    static Result<std::unique_ptr<Embedder>> create(std::shared_ptr<const Model> model,
                                                    const EmbedderOptions& options);
    ~Embedder();
    Embedder(const Embedder&) = delete;
    Embedder& operator=(const Embedder&) = delete;

    std::int32_t dimensions() const { return dimensions_; }
    std::int32_t max_tokens() const { return max_tokens_; }
    const Model& model() const { return *model_; }

    // With the tokens that the model wants around a text; special tokens in it are plain text. From
    // any thread.
    std::vector<Token> tokenize(const std::string& text) const;
    // One vector of length 1, of dimensions() numbers. One thread at a time. 1 to max_tokens()
    // tokens of the vocabulary, else invalid_argument.
    Result<std::vector<float>> embed(std::span<const Token> tokens);

   private:
    struct FreeContext {
        void operator()(llama_context* context) const;
    };

    Embedder(std::shared_ptr<const Model> model, std::int32_t max_tokens);

    std::shared_ptr<const Model> model_;
    std::int32_t max_tokens_;
    std::int32_t dimensions_ = 0;
    std::unique_ptr<llama_context, FreeContext> context_;
};

}  // namespace fermata
