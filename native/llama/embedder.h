// Texts to vectors, or pairs of texts to scores: a model of its own beside the one that generates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/types.h"
#include "llama/compute_threads.h"
#include "llama/model.h"

struct llama_context;

namespace fermata {

struct EmbedderOptions {
    std::int32_t max_tokens = 512;  // of one text
    std::int32_t threads = 1;
    // "mean", "cls" or "last"; "": as the file says.
    std::string pooling;
    // The model was trained to say how well a document answers a query; its file has the weights
    // for that. Without them llama.cpp gives numbers that mean nothing.
    bool ranks = false;
};

class Embedder {
   public:
    // `model` was loaded with ModelOptions::embeds. Errors: invalid_argument (neither the file nor
    // `options` names a pooling that gives one vector a text), out_of_memory, no_threads.
    static Result<std::unique_ptr<Embedder>> create(std::shared_ptr<const Model> model,
                                                    const EmbedderOptions& options);
    ~Embedder();
    Embedder(const Embedder&) = delete;
    Embedder& operator=(const Embedder&) = delete;

    std::int32_t dimensions() const { return dimensions_; }
    std::int32_t max_tokens() const { return max_tokens_; }
    const Model& model() const { return *model_; }

    // With the tokens that the model wants around a text; special tokens in it are plain text.
    // Error: invalid_argument. From any thread.
    Result<std::vector<Token>> tokenize(const std::string& text) const;
    // A query and a document as the model was trained to read them; special tokens in them are
    // plain text. Error: invalid_argument. From any thread.
    Result<std::vector<Token>> tokenize_pair(const std::string& query,
                                             const std::string& document) const;
    // One vector of length 1 (of a model that ranks: its scores as they are), of dimensions()
    // numbers. One thread at a time. 1 to max_tokens() tokens of the vocabulary, else
    // invalid_argument.
    Result<std::vector<float>> embed(std::span<const Token> tokens);

   private:
    struct FreeContext {
        void operator()(llama_context* context) const;
    };

    Embedder(std::shared_ptr<const Model> model, const EmbedderOptions& options);

    void find_frame();

    std::shared_ptr<const Model> model_;
    std::int32_t max_tokens_;
    bool ranks_;
    std::int32_t dimensions_ = 0;
    std::vector<Token> before_, behind_;  // of a text
    std::unique_ptr<llama_context, FreeContext> context_;
    std::shared_ptr<ComputeThreads> threads_;
};

}  // namespace fermata
