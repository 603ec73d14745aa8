// A loaded GGUF: weights, vocabulary, metadata. Immutable; contexts share it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "llama/tokenizer.h"
#include "llama/vocabulary.h"
#include "llama/weight_placement.h"

struct llama_model;

namespace fermata {

struct ModelOptions {
    std::string path;
    std::int32_t gpu_layers = 0;  // < 0: all
    WeightPlacement placement = {};
    // Tokenizer and metadata only; no backend can be made of such a model.
    bool vocabulary_only = false;
    // Nothing of the weights is read: what they and a cache take can be asked for, and no more.
    bool measures = false;
    // To embed texts with: it may be an encoder.
    bool embeds = false;
    // With its MTP layers, see mtp_layers.h.
    bool mtp_layers = false;
    // Called on the loading thread with 0 .. 1; false cancels the load.
    std::function<bool(float)> on_progress;
};

struct ModelInfo {
    std::string description;
    std::string architecture;
    std::uint64_t parameter_count = 0;
    std::uint64_t size_bytes = 0;
    std::int32_t vocabulary_size = 0;
    std::int32_t vocabulary_type = 0;  // llama.cpp's number
    std::int32_t embedding_size = 0;
    std::string file_type;  // of most tensors, as llama.cpp names it
    std::int32_t trained_context = 0;
    std::optional<std::string> chat_template;
    std::string bos_token;  // spelling; empty if none
    std::string eos_token;
    bool add_bos = false;
    std::vector<SpecialToken> special_tokens;
    bool is_recurrent = false;  // wholly or in part: no position can be returned to
};

struct ModelShape {
    std::int32_t key_length = 0;      // per head
    std::int32_t value_length = 0;    // per head
    std::int32_t sliding_window = 0;  // 0 = none
    std::int32_t gpu_layers = 0;      // in force, at most all
    std::int64_t state_bytes = 0;     // of recurrent layers, for a sequence, about
    // All weights are on the CPU, and kernels of our own give a row the same bits in any batch.
    bool keeps_bits = false;
};

class Model {
   public:
    // Errors: invalid_argument (no such file), model_load_failed (not a GGUF, unknown architecture,
    // not a text generation model, cancelled), out_of_memory.
    static Result<std::shared_ptr<const Model>> load(const ModelOptions& options);
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    const ModelInfo& info() const { return info_; }
    const ModelShape& shape() const { return shape_; }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    bool vocabulary_only() const { return vocabulary_only_; }
    llama_model* handle() const { return model_; }

   private:
    Model(llama_model* model, const ModelOptions& options);

    llama_model* model_;
    bool vocabulary_only_;
    Vocabulary vocabulary_;
    Tokenizer tokenizer_;
    ModelInfo info_;
    ModelShape shape_;
};

// llama.cpp's version and the CPU features that the build uses, one line.
std::string system_info();

}  // namespace fermata
