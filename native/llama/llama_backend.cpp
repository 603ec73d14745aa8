#include "llama/llama_backend.h"

#include <algorithm>
#include <exception>

#include "core/samplers.h"
#include "llama-ext.h"
#include "llama.h"
#include "llama/chain_sampler.h"
#include "llama/llama_batch.h"
#include "llama/log.h"
#include "llama/row_places.h"

namespace fermata {

void LlamaBackend::FreeContext::operator()(llama_context* context) const {
    llama_free(context);
}

LlamaBackend::LlamaBackend(std::shared_ptr<const Model> model, const CacheShape& shape)
    : model_(std::move(model)),
      shape_(shape),
      lengths_(static_cast<std::size_t>(shape.slot_count), 0),
      undoable_(static_cast<std::size_t>(shape.slot_count), 0),
      batch_(std::make_unique<BatchArrays>(shape.max_rows)),
      dry_samplers_(model_->vocabulary().handle()) {}

LlamaBackend::~LlamaBackend() {
    if (threads_ != nullptr) threads_->leave(context_.get());
}

bool LlamaBackend::stops(void* data) {
    auto& backend = *static_cast<LlamaBackend*>(data);
    if (backend.aborted_.load(std::memory_order_relaxed)) return true;
    backend.interrupted_ = backend.interrupted_ || (backend.shape_.partial_truncate &&
                                                    backend.is_unwanted_ && backend.is_unwanted_());
    return backend.interrupted_;
}

DecodeStatus LlamaBackend::decode(std::span<const BatchRow> rows, std::span<float> inputs) {
    has_logits_.clear();
    interrupted_ = false;
    all_states_ = nullptr;
    last_error_ = find_fault(rows);
    if (!last_error_.empty()) return DecodeStatus::kFailed;
    std::ranges::fill(undoable_, 0);

    const LogCapture log;
    threads_->adapt(context_.get());
    const llama_batch batch = batch_->fill(rows, inputs);
    std::int32_t status = -1;
    try {
        status = llama_decode(context_.get(), batch);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
    }
    if (status == 1 && shape_.layout == CacheLayout::kUnified) {
        last_error_ = "No free cells.";
        return DecodeStatus::kNoCells;
    }
    if (status != 0) {
        if (last_error_.empty()) last_error_ = log.errors_or("llama.cpp refused the batch");
        if (aborted_.load(std::memory_order_relaxed)) last_error_ = "Decoding was aborted.";
        reread_lengths(rows);
        const auto cut = [this](const BatchRow& row) { return truncate(row.slot, row.position); };
        return interrupted_ && std::ranges::all_of(rows, cut) ? DecodeStatus::kInterrupted
                                                              : DecodeStatus::kFailed;
    }
    threads_->computed(context_.get());
    for (const BatchRow& row : rows) {
        const auto slot = static_cast<std::size_t>(row.slot);
        // Its first row is at the position that was the slot's length.
        if (row.position > lengths_[slot] && undoable_[slot] < shape_.undo_rows) ++undoable_[slot];
        has_logits_.push_back(row.wants_logits);
    }
    for (const BatchRow& row : rows)
        lengths_[static_cast<std::size_t>(row.slot)] = row.position + 1;
    if (states_of_all_rows_) find_states(rows, batch);
    if (hidden_states_ != nullptr) keep_states(rows);
    return DecodeStatus::kOk;
}

std::string LlamaBackend::find_fault(std::span<const BatchRow> rows) const {
    if (aborted_.load(std::memory_order_relaxed)) return "Decoding was aborted.";
    if (rows.empty()) return "The batch is empty.";
    if (rows.size() > static_cast<std::size_t>(shape_.max_rows)) {
        return "The batch has " + std::to_string(rows.size()) + " rows, " +
               std::to_string(shape_.max_rows) + " are allowed.";
    }
    std::int32_t logit_rows = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const BatchRow& row = rows[i];
        const auto where = [i] { return "Row " + std::to_string(i) + ": "; };
        if (!contains(row.slot)) return where() + "no slot " + std::to_string(row.slot) + ".";
        if (!model_->vocabulary().contains(row.token))
            return where() + "no token " + std::to_string(row.token) + ".";
        const bool first = i == 0 || rows[i - 1].slot != row.slot;
        if (first && i > 0 && rows[i - 1].slot > row.slot)
            return where() + "slots are not ascending.";
        const std::int32_t expected =
            first ? lengths_[static_cast<std::size_t>(row.slot)] : rows[i - 1].position + 1;
        if (row.position != expected) {
            return where() + "position " + std::to_string(row.position) + " of slot " +
                   std::to_string(row.slot) + ", expected " + std::to_string(expected) + ".";
        }
        if (row.position >= shape_.cells_per_sequence) return where() + "the slot is full.";
        if (row.wants_logits && ++logit_rows > shape_.max_logit_rows)
            return where() + "too many rows want logits.";
    }
    return {};
}

// After a failure some micro-batches may have stayed.
void LlamaBackend::reread_lengths(std::span<const BatchRow> rows) {
    for (const BatchRow& row : rows) {
        const std::int32_t length = llama_memory_seq_pos_max(memory_, row.slot) + 1;
        lengths_[static_cast<std::size_t>(row.slot)] = length;
        if (hidden_states_ != nullptr) hidden_states_->lack(row.slot, length);
    }
}

void LlamaBackend::find_states(std::span<const BatchRow> rows, const llama_batch& batch) {
    const RowSplit split{.shape = shape_,
                         .is_recurrent = is_recurrent(),
                         .undo_rows = llama_n_rs_seq(context_.get())};
    state_places_ = places_of(rows, batch, model_->vocabulary().handle(), split);
    if (!state_places_.empty()) all_states_ = llama_get_embeddings_nextn(context_.get());
}

void LlamaBackend::keep_states(std::span<const BatchRow> rows) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto values = state(row);
        if (values.empty())
            hidden_states_->lack(rows[row].slot, rows[row].position + 1);
        else
            hidden_states_->add(rows[row].slot, rows[row].position, values);
    }
}

std::span<const float> LlamaBackend::state(std::size_t row) {
    const auto width = static_cast<std::size_t>(llama_model_n_embd_out(model_->handle()));
    const float* values = nullptr;
    if (states_of_all_rows_) {
        const bool has_it = all_states_ != nullptr && row < state_places_.size();
        if (has_it) values = all_states_ + state_places_[row] * width;
    } else if (of_mtp_layers_ && row < has_logits_.size() && has_logits_[row]) {
        values = llama_get_embeddings_nextn_ith(context_.get(), static_cast<std::int32_t>(row));
    }
    if (values == nullptr) return {};
    return {values, width};
}

std::span<const float> LlamaBackend::logits(std::size_t row) {
    if (row >= has_logits_.size() || !has_logits_[row]) return {};
    const float* values = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(row));
    if (values == nullptr) return {};
    return {values, static_cast<std::size_t>(model_->vocabulary().size())};
}

std::unique_ptr<Sampler> LlamaBackend::make_sampler(const SamplingParams& params) {
    if (params.script) {
        SamplingParams after = params;
        after.script.reset();
        return std::make_unique<ScriptedSampler>(
            *params.script, end_token(),
            params.samples_after_script ? make_sampler(after) : nullptr);
    }
    if (params.ignores_end) {
        SamplingParams banned = params;
        banned.ignores_end = false;
        for (const Token token : model_->vocabulary().end_tokens())
            banned.logit_bias.emplace_back(token, kBanningBias);
        return make_sampler(banned);
    }
    const bool penalized = Penalties(params).active();
    if (params.temperature <= 0.0f && !penalized && params.logit_bias.empty() &&
        !params.dry.active()) {
        return std::make_unique<GreedySampler>();
    }
    return std::make_unique<ChainSampler>(params, model_->vocabulary().size(), end_token(),
                                          dry_samplers_.make(params.dry));
}

std::string_view LlamaBackend::piece(Token token) const {
    return model_->vocabulary().contains(token) ? model_->vocabulary().piece(token)
                                                : std::string_view();
}

std::string LlamaBackend::spelled_piece(Token token) const {
    return model_->vocabulary().contains(token) ? model_->vocabulary().spelled_piece(token)
                                                : std::string();
}

bool LlamaBackend::is_end(Token token) const {
    return model_->vocabulary().is_end(token);
}

}  // namespace fermata
