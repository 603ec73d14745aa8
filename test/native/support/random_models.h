// Tiny models of every kind of memory, with random weights and the shipped model's vocabulary, made
// in a temporary folder.
#pragma once

#include <ggml.h>
#include <gguf.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "check.h"

namespace fermata::testing {

enum class Kind : std::uint8_t {
    kSlidingWindow,
    kHybrid,
    kDeltaNet,
    kDeltaNetWithExperts,
    kExperts,  // attention alone: it can be cut anywhere
    kMambaHybrid,
    kRecurrent,
};

inline const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::kSlidingWindow:
            return "gemma3";
        case Kind::kHybrid:
            return "lfm2";
        case Kind::kDeltaNet:
            return "qwen35";
        case Kind::kDeltaNetWithExperts:
            return "qwen3next";
        case Kind::kExperts:
            return "glm4moe";
        case Kind::kMambaHybrid:
            return "granitehybrid";
        case Kind::kRecurrent:
            return "mamba2";
    }
    return "";
}

class RandomModel {
   public:
    static constexpr std::int32_t kWindow = 48;

    // `has_mtp`: of delta nets and experts. Its layers then add little to what they get, and the
    // MTP layer behind them mostly says what the model will say itself.
    explicit RandomModel(Kind kind, bool has_mtp = false)
        : kind_(kind), has_mtp_(has_mtp), gguf_(gguf_init_empty()) {
        weights_ = ggml_init(
            {.mem_size = std::size_t{96} << 20, .mem_buffer = nullptr, .no_alloc = false});
        CHECK(weights_ != nullptr);
        copy_vocabulary("models/fermata-small.gguf");
        gguf_set_val_str(gguf_, "general.architecture", name_of(kind));
        set("block_count", kLayers + (has_mtp ? 1 : 0));
        set("context_length", 4096);
        set("embedding_length", kWidth);
        set("feed_forward_length", kInner);
        set("vocab_size", static_cast<std::uint32_t>(vocabulary_));
        gguf_set_val_f32(gguf_, key("attention.layer_norm_rms_epsilon").c_str(), 1e-6f);
        tensor("token_embd.weight", {kWidth, vocabulary_});
        if (kind == Kind::kSlidingWindow) add_sliding_window();
        if (kind == Kind::kHybrid) add_hybrid();
        if (kind == Kind::kDeltaNet || kind == Kind::kDeltaNetWithExperts) add_delta_net();
        if (kind == Kind::kExperts) add_attention_and_experts();
        if (kind == Kind::kMambaHybrid) add_mamba_hybrid();
        if (has_mtp) add_mtp_layer();
        if (kind == Kind::kRecurrent) add_recurrent();
    }
    ~RandomModel() {
        gguf_free(gguf_);
        ggml_free(weights_);
    }
    RandomModel(const RandomModel&) = delete;
    RandomModel& operator=(const RandomModel&) = delete;

    // Returns its path.
    std::string write() const {
        const auto path =
            std::filesystem::temp_directory_path() /
            (std::string("fermata-random-") + name_of(kind_) + (has_mtp_ ? "-mtp.gguf" : ".gguf"));
        CHECK(gguf_write_to_file(gguf_, path.c_str(), false));
        return path;
    }

   private:
    static constexpr std::int64_t kLayers = 6, kWidth = 64, kInner = 128, kHead = 16;
    static constexpr std::int64_t kHeads = 4, kKvHeads = 2, kExperts = 4;
    static constexpr std::int64_t kState = 16, kSteps = 8;  // of Mamba

    std::string key(const std::string& name) const {
        return std::string(name_of(kind_)) + "." + name;
    }
    void set(const std::string& name, std::int64_t value) {
        gguf_set_val_u32(gguf_, key(name).c_str(), static_cast<std::uint32_t>(value));
    }
    void copy_vocabulary(const char* path) {
        gguf_context* source = gguf_init_from_file(path, {.no_alloc = true, .ctx = nullptr});
        CHECK(source != nullptr);
        gguf_set_kv(gguf_, source);
        const auto tokens = gguf_find_key(source, "tokenizer.ggml.tokens");
        vocabulary_ = static_cast<std::int64_t>(gguf_get_arr_n(source, tokens));
        gguf_free(source);
    }

    float random() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<float>(state_ >> 40) / static_cast<float>(1 << 23) - 1.0f;
    }
    // Values around `middle`; `spread` 0: as a matrix of so many columns wants them.
    void tensor(const std::string& name, std::initializer_list<std::int64_t> sizes,
                float middle = 0.0f, float spread = 0.0f) {
        const std::vector<std::int64_t> dimensions(sizes);
        ggml_tensor* added = ggml_new_tensor(
            weights_, GGML_TYPE_F32, static_cast<int>(dimensions.size()), dimensions.data());
        CHECK(added != nullptr);
        ggml_set_name(added, name.c_str());
        if (spread == 0.0f) spread = 1.7f / std::sqrt(static_cast<float>(dimensions.front()));
        auto* values = static_cast<float*>(added->data);
        for (std::int64_t i = 0; i < ggml_nelements(added); ++i)
            values[i] = middle + spread * random();
        gguf_add_tensor(gguf_, added);
    }
    void norm(const std::string& name, std::int64_t size) { tensor(name, {size}, 1.0f, 0.1f); }
    // What a layer adds.
    void addend(const std::string& name, std::int64_t from, std::int64_t experts = 1) {
        tensor(name, {from, kWidth, experts}, 0.0f, has_mtp_ ? 0.0005f : 0.0f);
    }
    static std::string block(std::int64_t layer) { return "blk." + std::to_string(layer) + "."; }

    // `parts`: of a query; with two, one of them is its gate.
    void add_attention(std::int64_t layer, std::int64_t parts = 1) {
        tensor(block(layer) + "attn_q.weight", {kWidth, parts * kHeads * kHead});
        tensor(block(layer) + "attn_k.weight", {kWidth, kKvHeads * kHead});
        tensor(block(layer) + "attn_v.weight", {kWidth, kKvHeads * kHead});
        addend(block(layer) + "attn_output.weight", kHeads * kHead);
        if (kind_ == Kind::kMambaHybrid) return;
        norm(block(layer) + "attn_q_norm.weight", kHead);
        norm(block(layer) + "attn_k_norm.weight", kHead);
    }
    void add_feed_forward(std::int64_t layer) {
        norm(block(layer) + "ffn_norm.weight", kWidth);
        add_inner(layer);
    }
    void add_inner(std::int64_t layer) {
        if (has_experts()) return add_experts(layer);
        tensor(block(layer) + "ffn_gate.weight", {kWidth, kInner});
        tensor(block(layer) + "ffn_up.weight", {kWidth, kInner});
        addend(block(layer) + "ffn_down.weight", kInner);
    }

    bool has_experts() const {
        return kind_ == Kind::kDeltaNetWithExperts || kind_ == Kind::kExperts;
    }
    void set_experts() {
        set("expert_count", kExperts);
        set("expert_used_count", 2);
        set("expert_feed_forward_length", kInner);
    }
    // And one that all tokens share.
    void add_experts(std::int64_t layer) {
        tensor(block(layer) + "ffn_gate_inp.weight", {kWidth, kExperts});
        tensor(block(layer) + "ffn_gate_exps.weight", {kWidth, kInner, kExperts});
        tensor(block(layer) + "ffn_up_exps.weight", {kWidth, kInner, kExperts});
        addend(block(layer) + "ffn_down_exps.weight", kInner, kExperts);
        if (kind_ == Kind::kDeltaNetWithExperts)
            tensor(block(layer) + "ffn_gate_inp_shexp.weight", {kWidth});
        else
            tensor(block(layer) + "exp_probs_b.bias", {kExperts}, 0.0f, 0.01f);
        tensor(block(layer) + "ffn_gate_shexp.weight", {kWidth, kInner});
        tensor(block(layer) + "ffn_up_shexp.weight", {kWidth, kInner});
        addend(block(layer) + "ffn_down_shexp.weight", kInner);
    }

    void add_sliding_window() {
        set("attention.head_count", kHeads);
        set("attention.head_count_kv", kKvHeads);
        set("attention.key_length", kHead);
        set("attention.value_length", kHead);
        set("attention.sliding_window", kWindow);
        norm("output_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            add_attention(layer);
            norm(block(layer) + "post_attention_norm.weight", kWidth);
            add_feed_forward(layer);
            norm(block(layer) + "post_ffw_norm.weight", kWidth);
        }
    }

    // Each third layer has attention; the first one has none, as in the real ones.
    void set_heads() {
        set("attention.head_count", kHeads);
        std::array<std::uint32_t, kLayers> heads{};
        for (std::size_t layer = 2; layer < heads.size(); layer += 3)
            heads[layer] = kKvHeads;
        gguf_set_arr_data(gguf_, key("attention.head_count_kv").c_str(), GGUF_TYPE_UINT32,
                          heads.data(), heads.size());
    }

    void add_hybrid() {
        set_heads();
        set("shortconv.l_cache", 3);
        norm("token_embd_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            add_feed_forward(layer);
            if (layer % 3 == 2) {
                add_attention(layer);
                continue;
            }
            tensor(block(layer) + "shortconv.conv.weight", {3, kWidth});
            tensor(block(layer) + "shortconv.in_proj.weight", {kWidth, 3 * kWidth});
            tensor(block(layer) + "shortconv.out_proj.weight", {kWidth, kWidth});
        }
    }

    // Each third layer has attention, with a gate.
    void add_delta_net() {
        constexpr std::int64_t kStateHeads = 4, kKeyHeads = 2, kValues = kStateHeads * kHead;
        set("attention.head_count", kHeads);
        set("attention.head_count_kv", kKvHeads);
        set("attention.key_length", kHead);
        set("attention.value_length", kHead);
        set("full_attention_interval", 3);
        set("rope.dimension_count", kHead);
        if (has_experts()) {
            set_experts();
            set("expert_shared_feed_forward_length", kInner);
        } else {
            const std::array<std::int32_t, 4> sections{4, 2, 2, 0};
            gguf_set_arr_data(gguf_, key("rope.dimension_sections").c_str(), GGUF_TYPE_INT32,
                              sections.data(), sections.size());
        }
        set("ssm.conv_kernel", 4);
        set("ssm.inner_size", kValues);
        set("ssm.state_size", kHead);
        set("ssm.time_step_rank", kStateHeads);
        set("ssm.group_count", kKeyHeads);
        norm("output_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            norm(block(layer) + "post_attention_norm.weight", kWidth);
            add_inner(layer);
            if (layer % 3 == 2) {
                add_attention(layer, 2);
                continue;
            }
            constexpr std::int64_t kConvolved = 2 * kKeyHeads * kHead + kValues;
            tensor(block(layer) + "attn_qkv.weight", {kWidth, kConvolved});
            tensor(block(layer) + "attn_gate.weight", {kWidth, kValues});
            tensor(block(layer) + "ssm_conv1d.weight", {4, kConvolved});
            tensor(block(layer) + "ssm_dt.bias", {kStateHeads}, -2.0f, 0.5f);
            tensor(block(layer) + "ssm_a", {kStateHeads}, -0.5f, 0.3f);
            if (has_experts()) {
                tensor(block(layer) + "ssm_ba.weight", {kWidth, 2 * kStateHeads});
            } else {
                tensor(block(layer) + "ssm_beta.weight", {kWidth, kStateHeads});
                tensor(block(layer) + "ssm_alpha.weight", {kWidth, kStateHeads});
            }
            norm(block(layer) + "ssm_norm.weight", kHead);
            addend(block(layer) + "ssm_out.weight", kValues);
        }
    }

    void add_attention_and_experts() {
        set("attention.head_count", kHeads);
        set("attention.head_count_kv", kKvHeads);
        set("attention.key_length", kHead);
        set("attention.value_length", kHead);
        set("rope.dimension_count", kHead);
        set("expert_shared_count", 1);
        set_experts();
        norm("output_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            norm(block(layer) + "post_attention_norm.weight", kWidth);
            add_attention(layer);
            add_inner(layer);
        }
    }

    // It goes by the token for the most part, and a little by what the model gave for the one
    // before.
    void add_mtp_layer() {
        set("nextn_predict_layers", 1);
        tensor("output.weight", {kWidth, vocabulary_}, 0.0f, 1.7f);  // it is sure of its choice
        norm(block(kLayers) + "attn_norm.weight", kWidth);
        norm(block(kLayers) + "post_attention_norm.weight", kWidth);
        add_inner(kLayers);
        add_attention(kLayers, kind_ == Kind::kExperts ? 1 : 2);
        tensor(block(kLayers) + "nextn.enorm.weight", {kWidth}, 1.0f, 1e-6f);
        tensor(block(kLayers) + "nextn.hnorm.weight", {kWidth}, 1.0f, 1e-6f);
        const std::string projection = block(kLayers) + "nextn.eh_proj.weight";
        tensor(projection, {2 * kWidth, kWidth}, 0.0f, 0.005f);
        auto* values = static_cast<float*>(ggml_get_tensor(weights_, projection.c_str())->data);
        for (std::int64_t i = 0; i < kWidth; ++i)
            values[i * 2 * kWidth + i] += 1.0f;
    }

    // The sizes of Mamba 2's layers.
    void set_mamba() {
        set("ssm.conv_kernel", 4);
        set("ssm.inner_size", kInner);
        set("ssm.state_size", kState);
        set("ssm.time_step_rank", kSteps);
        set("ssm.group_count", 1);
    }
    void add_mamba(std::int64_t layer) {
        constexpr std::int64_t kConvolved = kInner + 2 * kState;
        tensor(block(layer) + "ssm_in.weight", {kWidth, kInner + kConvolved + kSteps});
        tensor(block(layer) + "ssm_conv1d.weight", {4, kConvolved});
        tensor(block(layer) + "ssm_conv1d.bias", {kConvolved}, 0.0f, 0.1f);
        tensor(block(layer) + "ssm_dt.bias", {kSteps}, -2.0f, 0.5f);
        tensor(block(layer) + "ssm_a", {1, kSteps}, -0.5f, 0.3f);
        tensor(block(layer) + "ssm_d", {1, kSteps}, 1.0f, 0.1f);
        norm(block(layer) + "ssm_norm.weight", kInner);
        tensor(block(layer) + "ssm_out.weight", {kInner, kWidth});
    }

    void add_recurrent() {
        set_mamba();
        set("attention.head_count", 0);
        norm("output_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            add_mamba(layer);
        }
    }

    void add_mamba_hybrid() {
        set_mamba();
        set_heads();
        norm("output_norm.weight", kWidth);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            norm(block(layer) + "attn_norm.weight", kWidth);
            layer % 3 == 2 ? add_attention(layer) : add_mamba(layer);
            add_feed_forward(layer);
        }
    }

    Kind kind_;
    bool has_mtp_;
    gguf_context* gguf_;
    ggml_context* weights_ = nullptr;
    std::int64_t vocabulary_ = 0;
    std::uint64_t state_ = 42;
};

}  // namespace fermata::testing
