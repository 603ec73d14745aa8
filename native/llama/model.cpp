#include "llama/model.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "kernels/quantized_products.h"
#include "llama-model.h"
#include "llama.h"
#include "llama/log.h"

namespace fermata {

namespace {

std::string metadata(const llama_model* model, const std::string& key) {
    std::string value(256, '\0');
    const std::int32_t length =
        llama_model_meta_val_str(model, key.c_str(), value.data(), value.size());
    value.resize(length < 0 ? 0 : std::min(static_cast<std::size_t>(length), value.size() - 1));
    return value;
}

std::int32_t metadata_number(const llama_model* model, const std::string& key,
                             std::int32_t otherwise) {
    const std::string value = metadata(model, key);
    return value.empty() ? otherwise : std::atoi(value.c_str());
}

// Of short convolutions (LFM2) so few that they do not matter; of kinds that tell no sizes, what
// those of a model of nine billion weights have.
std::int64_t state_bytes_of(const llama_model* model, const std::string& architecture) {
    constexpr std::int64_t kWhereNotTold = std::int64_t{64} << 20;
    if (!metadata(model, architecture + ".shortconv.l_cache").empty()) return 0;
    const std::int64_t state = metadata_number(model, architecture + ".ssm.state_size", 0);
    const std::int64_t inner = metadata_number(model, architecture + ".ssm.inner_size", 0);
    if (state <= 0 || inner <= 0) return kWhereNotTold;
    return state * inner * llama_model_n_layer(model) * std::int64_t{sizeof(float)};
}

// Attention by ALiBi, and with heads of other sizes, is ggml's (kernels/attention_operation.h).
bool has_our_attention(const llama_model* model, const ModelShape& shape) {
    const auto is_ours = [](std::int32_t head) { return head % 16 == 0 && head <= 576; };
    return model->hparams.f_max_alibi_bias == 0.0F && is_ours(shape.key_length) &&
           is_ours(shape.value_length);
}

// Rows of an embedding are looked up; where it is the output too, they are multiplied.
bool weights_keep_bits(const llama_model* model) {
    const std::string embedding =
        model->get_tensor("output.weight") == nullptr ? "" : "token_embd.weight";
    return std::ranges::all_of(llama_internal_get_tensor_map(model), [&](const auto& entry) {
        const auto& [name, tensor] = entry;
        const bool is_vector = tensor->ne[1] == 1;
        return is_vector || name == embedding || products::keeps_bits(tensor);
    });
}

ModelShape shape_of(const llama_model* model, const std::string& architecture,
                    std::int32_t gpu_layers) {
    ModelShape shape;
    const std::int32_t heads = llama_model_n_head(model);
    const std::int32_t head = heads > 0 ? llama_model_n_embd(model) / heads : 0;
    shape.key_length = metadata_number(model, architecture + ".attention.key_length", head);
    shape.value_length = metadata_number(model, architecture + ".attention.value_length", head);
    shape.sliding_window = llama_model_n_swa(model);
    if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
        shape.state_bytes = state_bytes_of(model, architecture);
    shape.keeps_bits = has_our_attention(model, shape) && weights_keep_bits(model);
    const std::int32_t layers = llama_model_n_layer(model);
    shape.gpu_layers = !llama_supports_gpu_offload() ? 0
                       : gpu_layers < 0              ? layers
                                                     : std::min(gpu_layers, layers);
    return shape;
}

std::string spelling_of(const llama_vocab* vocab, Token token) {
    return token < 0 ? std::string() : llama_vocab_get_text(vocab, token);
}

ModelInfo info_of(const llama_model* model, const Vocabulary& vocabulary, bool vocabulary_only) {
    ModelInfo info;
    info.description.resize(256);
    const std::int32_t length =
        llama_model_desc(model, info.description.data(), info.description.size());
    info.description.resize(static_cast<std::size_t>(std::clamp(length, 0, 255)));
    info.architecture = metadata(model, "general.architecture");
    if (!vocabulary_only) {
        info.parameter_count = llama_model_n_params(model);
        info.size_bytes = llama_model_size(model);
        info.trained_context = llama_model_n_ctx_train(model);
        info.embedding_size = llama_model_n_embd(model);
        info.file_type = llama_ftype_name(llama_model_ftype(model));
        info.is_recurrent = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
    }
    info.vocabulary_size = vocabulary.size();
    info.vocabulary_type = llama_vocab_type(vocabulary.handle());
    if (const char* text = llama_model_chat_template(model, nullptr)) info.chat_template = text;
    info.bos_token = spelling_of(vocabulary.handle(), vocabulary.bos_token());
    info.eos_token = spelling_of(vocabulary.handle(), vocabulary.eos_token());
    info.add_bos = vocabulary.adds_bos();
    info.special_tokens = vocabulary.special_tokens();
    return info;
}

// ggml ends the process at such a norm, when it is computed.
bool has_sound_norms(const llama_hparams& numbers) {
    const auto is_sound = [](float epsilon) { return epsilon >= 0.0f; };
    return is_sound(numbers.f_norm_eps) && is_sound(numbers.f_norm_rms_eps) &&
           is_sound(numbers.f_norm_group_eps);
}

// Why the model cannot do what it is loaded for; empty if it can.
std::string unsupported(const llama_model* model, const ModelOptions& options) {
    if (llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE)
        return "it has no vocabulary";
    if (options.vocabulary_only) return {};
    if (!has_sound_norms(model->hparams)) return "the epsilon of its norms is no positive number";
    if (options.embeds) {
        return llama_model_has_decoder(model) && llama_model_has_encoder(model)
                   ? "it encodes and decodes; embeddings need one of them"
                   : std::string();
    }
    if (!llama_model_has_decoder(model) || llama_model_has_encoder(model))
        return "it is not a decoder-only model";
    if (llama_model_is_diffusion(model)) return "it is a diffusion model";
    return {};
}

bool names_memory(const std::string& message) {
    return message.find("alloc") != std::string::npos ||
           message.find("out of memory") != std::string::npos;
}

}  // namespace

Model::Model(llama_model* model, const ModelOptions& options)
    : model_(model),
      vocabulary_only_(options.vocabulary_only),
      vocabulary_(llama_model_get_vocab(model)),
      tokenizer_(vocabulary_),
      info_(info_of(model, vocabulary_, options.vocabulary_only)) {
    if (!vocabulary_only_) shape_ = shape_of(model, info_.architecture, options.gpu_layers);
}

Model::~Model() {
    llama_model_free(model_);
}

Result<std::shared_ptr<const Model>> Model::load(const ModelOptions& options) {
    initialize_llama();
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(options.path, ignored)) {
        return Error{ErrorCode::kInvalidArgument,
                     "There is no model file at " + options.path + "."};
    }
    struct Progress {
        const ModelOptions& options;
        bool cancelled = false;
    } progress{options};
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = options.gpu_layers;
    params.vocab_only = options.vocabulary_only;
    params.load_mtp = options.mtp_layers;
    auto placed = WeightPlacementParams::of(options.placement);
    if (!placed.ok()) return placed.error();
    placed.value()->apply(params);
    if (options.measures) {
        params.no_alloc = true;
        // A mapped file would be no allocation of the devices'.
        params.load_mode = LLAMA_LOAD_MODE_NONE;
    }
    params.progress_callback_user_data = &progress;
    params.progress_callback = [](float fraction, void* data) {
        auto& state = *static_cast<Progress*>(data);
        if (state.options.on_progress && !state.options.on_progress(fraction))
            state.cancelled = true;
        return !state.cancelled;
    };

    const LogCapture log;
    const std::string subject = "The model " + options.path + " cannot be loaded: ";
    llama_model* model = nullptr;
    try {
        model = llama_model_load_from_file(options.path.c_str(), params);
        if (model == nullptr) {
            const std::string why = log.errors_or("llama.cpp gave no reason");
            if (progress.cancelled)
                return Error{ErrorCode::kModelLoadFailed, subject + "loading was cancelled."};
            return Error{names_memory(why) ? ErrorCode::kOutOfMemory : ErrorCode::kModelLoadFailed,
                         subject + why};
        }
        if (const std::string why = unsupported(model, options); !why.empty()) {
            llama_model_free(model);
            return Error{ErrorCode::kModelLoadFailed, subject + why + "."};
        }
        return std::shared_ptr<const Model>(new Model(model, options));
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfMemory, subject + "out of memory."};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kModelLoadFailed, subject + failure.what()};
    }
}

std::string system_info() {
    initialize_llama();
    std::string line =
        std::string("llama.cpp ") + llama_version() + " | " + llama_print_system_info();
    while (!line.empty() && (line.back() == ' ' || line.back() == '|'))
        line.pop_back();
    return line;
}

}  // namespace fermata
