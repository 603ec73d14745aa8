// LlamaBackend::create: options are checked, memory is weighed, the context is made.
#include <algorithm>
#include <exception>
#include <new>
#include <numeric>

#include "ggml-cpu.h"
#include "llama-ext.h"
#include "llama.h"
#include "llama/llama_backend.h"
#include "llama/llama_batch.h"
#include "llama/log.h"
#include "llama/mtp_layers.h"

namespace fermata {

namespace {

constexpr std::int32_t kCellBlock = 256;  // llama.cpp pads sequences to it
constexpr std::int32_t kMaxThreads = 512;
constexpr std::int32_t kMinLogitRows = 16;
constexpr std::int64_t kMaxCells = std::int64_t{1} << 31;
// Rows of a chunk where what is computed may not depend on what else runs.
constexpr std::int32_t kFixedChunk = 32;
// llama.cpp wants a pass to have more rows than those that may be taken back and the one before.
constexpr std::int32_t kRowsBesideUndo = 2;
// For the states of a slot's rows that may be taken back.
constexpr std::int64_t kUndoBytes = std::int64_t{256} << 20;
constexpr std::int32_t kLineRows = 16;  // as many 4-byte values fill a cache line

std::int64_t round_up(std::int64_t cells) {
    return (cells + kCellBlock - 1) / kCellBlock * kCellBlock;
}

// llama.cpp lays its buffers out for the rows rounded up to a multiple of the slots, and aligns
// tensors to 32 bytes only: 513 rows, of 9 slots, leave many across two cache lines (AMX products
// then take a third longer). Up to a quarter more rows are worth it.
std::int32_t whole_lines(std::int32_t rows, std::int32_t slots, std::int64_t cells) {
    const std::int32_t step = std::lcm(kLineRows, slots);
    const std::int32_t rounded = (rows + step - 1) / step * step;
    return rounded <= std::min<std::int64_t>(rows + rows / 4, cells) ? rounded : rows;
}

llama_flash_attn_type type_of(FlashAttention flash_attention) {
    switch (flash_attention) {
        case FlashAttention::kOff:
            return LLAMA_FLASH_ATTN_TYPE_DISABLED;
        case FlashAttention::kOn:
            return LLAMA_FLASH_ATTN_TYPE_ENABLED;
        case FlashAttention::kAuto:
            break;
    }
    return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

ggml_type type_of(KvType type) {
    switch (type) {
        case KvType::kF32:
            return GGML_TYPE_F32;
        case KvType::kF16:
            return GGML_TYPE_F16;
        case KvType::kBf16:
            return GGML_TYPE_BF16;
        case KvType::kQ8_0:
            return GGML_TYPE_Q8_0;
        case KvType::kQ4_0:
            return GGML_TYPE_Q4_0;
        case KvType::kQ4_1:
            return GGML_TYPE_Q4_1;
        case KvType::kQ5_0:
            return GGML_TYPE_Q5_0;
        case KvType::kQ5_1:
            return GGML_TYPE_Q5_1;
        case KvType::kIq4Nl:
            return GGML_TYPE_IQ4_NL;
    }
    return GGML_TYPE_F16;
}

bool is_quantized(KvType type) {
    return ggml_is_quantized(type_of(type));
}

void apply(const RopeOptions& rope, llama_context_params& params) {
    switch (rope.scaling) {
        case RopeScaling::kAsModel:
            break;
        case RopeScaling::kNone:
            params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_NONE;
            break;
        case RopeScaling::kLinear:
            params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
            break;
        case RopeScaling::kYarn:
            params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN;
            break;
    }
    params.rope_freq_base = rope.freq_base;
    params.rope_freq_scale = rope.freq_scale;
    params.yarn_orig_ctx = static_cast<std::uint32_t>(rope.yarn_orig_ctx);
    params.yarn_ext_factor = rope.yarn_ext_factor;
    params.yarn_attn_factor = rope.yarn_attn_factor;
    params.yarn_beta_fast = rope.yarn_beta_fast;
    params.yarn_beta_slow = rope.yarn_beta_slow;
}

std::string options_fault(const Model& model, const BackendOptions& options) {
    const auto most = static_cast<std::int32_t>(llama_max_parallel_sequences());
    if (model.vocabulary_only()) return "The model was loaded without its weights.";
    if (options.slot_count < 1 || options.slot_count > most) {
        return "The number of slots must be 1 to " + std::to_string(most) + ", not " +
               std::to_string(options.slot_count) + ".";
    }
    if (options.cells_per_sequence < 1 || options.cells_per_sequence > kMaxCells / 2) {
        return "The context size must be at least 1, not " +
               std::to_string(options.cells_per_sequence) + ".";
    }
    if (options.deterministic && options.layout == CacheLayout::kUnified)
        return "A deterministic engine needs the streams layout.";
    if (options.layout == CacheLayout::kUnified && options.cells_total < 1)
        return "The pool of cells is empty.";
    if (options.max_rows < 1 || options.micro_batch_rows < 1)
        return "A batch must have at least one row.";
    if (options.threads < 1 || options.threads > kMaxThreads) {
        return "The number of threads must be 1 to 512, not " + std::to_string(options.threads) +
               ".";
    }
    if (is_quantized(options.values) && options.flash_attention == FlashAttention::kOff) {
        return "A quantized V cache needs flash attention.";
    }
    const ModelShape& shape = model.shape();
    if ((is_quantized(options.keys) && shape.key_length % 32 != 0) ||
        (is_quantized(options.values) && shape.value_length % 32 != 0)) {
        return "The model's head size does not allow a quantized cache.";
    }
    return {};
}

// Whether every position of a sliding-window model stays, so that it can be cut anywhere. In the
// unified layout another slot's rows may take cells that have left the window.
bool keeps_full_window(const Model& model, const BackendOptions& options) {
    return model.shape().sliding_window > 0 && options.layout == CacheLayout::kStreams &&
           (options.deterministic || !options.forks);
}

// Recurrent layers keep a state for each row that may be taken back.
std::int32_t undo_rows_of(const Model& model, const BackendOptions& options,
                          const CacheShape& shape) {
    if (shape.partial_truncate || options.deterministic) return 0;
    const std::int64_t bytes = model.shape().state_bytes;
    if (bytes > 0 && !options.undo_states) return 0;
    const std::int64_t states = bytes > 0 ? kUndoBytes / bytes : options.undo_rows;
    const std::int64_t rows = std::min<std::int64_t>(
        {options.undo_rows, states, shape.micro_batch_rows - kRowsBesideUndo});
    return static_cast<std::int32_t>(std::max<std::int64_t>(rows, 0));
}

CacheShape shape_of(const Model& model, const BackendOptions& options) {
    CacheShape shape;
    const bool streams = options.layout == CacheLayout::kStreams;
    shape.layout = options.layout;
    shape.slot_count = options.slot_count;
    const std::int64_t per_sequence = round_up(options.cells_per_sequence);
    shape.cells_total = streams ? per_sequence * options.slot_count : round_up(options.cells_total);
    shape.cells_per_sequence = static_cast<std::int32_t>(std::min(per_sequence, shape.cells_total));
    const std::int64_t rows = std::max(options.max_rows, options.slot_count);
    shape.max_rows = static_cast<std::int32_t>(std::min(rows, shape.cells_total));
    const std::int32_t micro_batch_rows =
        std::min(std::max(options.micro_batch_rows, options.slot_count), shape.max_rows);
    shape.micro_batch_rows = whole_lines(micro_batch_rows, options.slot_count, shape.cells_total);
    const bool slides = model.shape().sliding_window > 0;
    // MTP layers have attention alone.
    const bool is_recurrent = model.info().is_recurrent && !options.mtp_layers;
    shape.partial_truncate = !is_recurrent && (!slides || keeps_full_window(model, options));
    shape.undo_rows = undo_rows_of(model, options, shape);
    shape.keeps_bits =
        streams && options.flash_attention != FlashAttention::kOff && model.shape().keeps_bits;
    shape.forks_stand_alone = is_recurrent && llama_model_is_recurrent(model.handle());
    // Rows that are computed again with their chunk are truncated first.
    if (options.deterministic) {
        shape.fixed_chunk = shape.partial_truncate
                                ? std::min({kFixedChunk, shape.max_rows, shape.micro_batch_rows})
                                : 1;
    }
    return shape;
}

llama_context_params params_of(const CacheShape& shape, const BackendOptions& options,
                               bool keeps_full_window) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(shape.cells_total);
    params.n_batch = static_cast<std::uint32_t>(std::max(shape.max_rows, shape.micro_batch_rows));
    params.n_ubatch = static_cast<std::uint32_t>(shape.micro_batch_rows);
    params.n_seq_max = static_cast<std::uint32_t>(shape.slot_count);
    params.n_outputs_max = static_cast<std::uint32_t>(shape.max_logit_rows);
    params.n_outputs_max_per_seq = 0;
    params.n_threads = options.threads;
    params.n_threads_batch = options.threads;
    params.flash_attn_type = type_of(options.flash_attention);
    params.type_k = type_of(options.keys);
    params.type_v = type_of(options.values);
    params.swa_full = keeps_full_window;
    params.n_rs_seq = static_cast<std::uint32_t>(shape.undo_rows);
    apply(options.rope, params);
    params.kv_unified = shape.layout == CacheLayout::kUnified;
    if (options.mtp_layers) params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    return params;
}

// The options are sound, and the cache can be made for them.
Result<CacheShape> checked_shape(const Model& model, const BackendOptions& options) {
    initialize_llama();
    if (std::string fault = options_fault(model, options); !fault.empty())
        return Error{ErrorCode::kInvalidArgument, std::move(fault)};
    CacheShape shape = shape_of(model, options);
    if (shape.cells_total >= kMaxCells)
        return Error{ErrorCode::kInvalidArgument, "The cache cannot have 2^31 cells or more."};
    const std::int32_t wanted =
        std::max({options.max_logit_rows, options.slot_count, kMinLogitRows, shape.fixed_chunk});
    shape.max_logit_rows = std::min(wanted, shape.max_rows);
    return shape;
}

std::uint64_t cache_in(const MemoryNeeds& needs) {
    std::uint64_t bytes = needs.host.cache;
    for (const auto& device : needs.devices)
        bytes += device.parts.cache;
    return bytes;
}

// Whether llama.cpp is asked for the states of all rows.
bool gives_all_states(const Model& model, const BackendOptions& options) {
    return options.keeps_states || (options.mtp_layers && !mtp_states_of_logits(model));
}

// What rows give: of each in the cache, and llama.cpp's of a batch. MTP layers share the weights of
// the model.
void add_states(const Model& model, const BackendOptions& options, const CacheShape& shape,
                MemoryNeeds& needs) {
    const std::int32_t width = llama_model_n_embd_out(model.handle());
    const auto of_rows = [width](std::int64_t rows) {
        return static_cast<std::uint64_t>(rows * width) * sizeof(float);
    };
    if (options.mtp_layers || options.keeps_states)
        needs.host.compute += of_rows(gives_all_states(model, options)
                                          ? std::max(shape.max_rows, shape.micro_batch_rows)
                                          : shape.max_logit_rows);
    if (options.mtp_layers) {
        needs.host.weights = 0;
        for (auto& device : needs.devices)
            device.parts.weights = 0;
    }
    if (options.keeps_states)
        needs.host.cache +=
            static_cast<std::uint64_t>(HiddenStates::bytes_for(shape.cells_total, width));
}

}  // namespace

Result<MemoryNeeds> LlamaBackend::measure(const Model& model, const BackendOptions& options) {
    auto checked = checked_shape(model, options);
    if (!checked.ok()) return checked.error();
    const CacheShape& shape = checked.value();
    const LogCapture log;
    try {
        const std::unique_ptr<llama_context, FreeContext> context(llama_init_from_model(
            model.handle(), params_of(shape, options, keeps_full_window(model, options))));
        if (context == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         "The cache cannot be created: " + log.errors_or("no reason given")};
        }
        MemoryNeeds needs = memory_needs(context.get());
        // llama.cpp keeps the logits beside its buffers.
        needs.host.compute += static_cast<std::uint64_t>(shape.max_logit_rows) *
                              static_cast<std::uint64_t>(model.vocabulary().size()) * sizeof(float);
        add_states(model, options, shape, needs);
        return needs;
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kInvalidArgument,
                     std::string("The cache cannot be created: ") + failure.what()};
    }
}

Result<std::unique_ptr<LlamaBackend>> LlamaBackend::create(
    std::shared_ptr<const Model> model, const BackendOptions& options,
    std::shared_ptr<ComputeThreads> threads) {
    if (model == nullptr) return Error{ErrorCode::kInvalidArgument, "There is no model."};
    auto checked = checked_shape(*model, options);
    if (!checked.ok()) return checked.error();
    const CacheShape shape = checked.value();

    const LogCapture log;
    try {
        std::unique_ptr<LlamaBackend> backend(new LlamaBackend(std::move(model), shape));
        llama_context_params params =
            params_of(shape, options, keeps_full_window(*backend->model_, options));
        params.abort_callback_data = backend.get();
        params.abort_callback = stops;
        backend->context_.reset(llama_init_from_model(backend->model_->handle(), params));
        llama_context* context = backend->context_.get();
        if (context == nullptr) {
            const std::string why = log.errors_or("llama.cpp gave no reason");
            const bool memory_failed = why.find("alloc") != std::string::npos;
            return Error{memory_failed ? ErrorCode::kOutOfMemory : ErrorCode::kInvalidArgument,
                         "The cache cannot be created: " + why};
        }
        backend->of_mtp_layers_ = options.mtp_layers;
        backend->states_of_all_rows_ = gives_all_states(*backend->model_, options);
        if (options.mtp_layers || options.keeps_states)
            llama_set_embeddings_nextn(context, true, !backend->states_of_all_rows_);
        if (options.keeps_states)
            backend->hidden_states_ = std::make_shared<HiddenStates>(
                shape.slot_count, llama_model_n_embd_out(backend->model_->handle()));
        // Not every kind of recurrent layer keeps its states.
        if (backend->undoes_states())
            backend->shape_.undo_rows = static_cast<std::int32_t>(llama_n_rs_seq(context));
        backend->cache_bytes_ = cache_in(memory_needs(context));
        backend->memory_ = llama_get_memory(context);
        if (backend->memory_ == nullptr) {
            return Error{ErrorCode::kModelLoadFailed,
                         "The model keeps no cache; it cannot generate text."};
        }
        // Everything else here rests on these numbers.
        const bool streams = shape.layout == CacheLayout::kStreams;
        if (llama_n_ctx(context) != shape.cells_total ||
            llama_n_batch(context) < static_cast<std::uint32_t>(shape.max_rows) ||
            llama_n_ubatch(context) != static_cast<std::uint32_t>(shape.micro_batch_rows) ||
            (streams &&
             llama_n_ctx_seq(context) != static_cast<std::uint32_t>(shape.cells_per_sequence))) {
            return Error{ErrorCode::kInvalidArgument, "llama.cpp changed the size of the cache."};
        }
        if (threads == nullptr) {
            auto started =
                ComputeThreads::start({.most = options.threads, .adapts = options.adapt_threads});
            if (!started.ok()) return started.error();
            threads = std::move(started.value());
        }
        backend->threads_ = std::move(threads);
        backend->threads_->join(context);
        return backend;
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfMemory, "The cache cannot be created: out of memory."};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kInvalidArgument,
                     std::string("The cache cannot be created: ") + failure.what()};
    }
}

}  // namespace fermata
