// core/backend.h on a llama.cpp context.
//
// What llama.cpp would answer with abort() is checked here first and refused with kFailed, leaving
// the cache as it was; last_error() says why. Beyond the contract of Backend:
// - Streams: a copy moves its data at once, only what is used of the slot. A copy of a
//   sliding-window model whose caches are whole (full_window) moves its data at the start of the
//   next decode, before anything is computed, in the order of the copy_prefix calls: `from` may be
//   cleared, refilled by decode, copied on or be the target of another copy at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/result.h"
#include "llama/compute_threads.h"
#include "llama/dry.h"
#include "llama/hidden_states.h"
#include "llama/memory_needs.h"
#include "llama/model.h"

struct llama_batch;
struct llama_context;
class llama_io_read_i;
struct llama_memory_i;

namespace fermata {

class BatchArrays;
class StatePieces;

// kAuto: wherever the device that holds the cache can compute it.
enum class FlashAttention : std::uint8_t { kOff, kOn, kAuto };
enum class KvType : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kIq4Nl };

enum class RopeScaling : std::uint8_t { kAsModel, kNone, kLinear, kYarn };

// How positions are stretched; 0, or below 0 of the YaRN factors: as the model says.
struct RopeOptions {
    RopeScaling scaling = RopeScaling::kAsModel;
    float freq_base = 0;
    float freq_scale = 0;
    std::int32_t yarn_orig_ctx = 0;
    float yarn_ext_factor = -1;
    float yarn_attn_factor = -1;
    float yarn_beta_fast = -1;
    float yarn_beta_slow = -1;
};

struct BackendOptions {
    CacheLayout layout = CacheLayout::kStreams;
    std::int32_t slot_count = 1;             // 1 .. 256
    std::int32_t cells_per_sequence = 4096;  // rounded up to a multiple of 256
    std::int64_t cells_total = 0;            // unified: the pool, rounded up; streams: ignored
    // Both are raised to slot_count, which llama.cpp needs; shape() has what is in force.
    std::int32_t max_rows = 512;
    std::int32_t micro_batch_rows = 512;
    // Rows that may want logits in one decode; 0 = the larger of slot_count and 16. Logits are the
    // larger part of the compute memory at a big vocabulary.
    std::int32_t max_logit_rows = 0;
    std::int32_t threads = 1;
    bool adapt_threads = false;  // fewer while other processes use the cores
    FlashAttention flash_attention = FlashAttention::kAuto;
    KvType keys = KvType::kF16;
    KvType values = KvType::kF16;  // quantized: not with FlashAttention::kOff
    RopeOptions rope = {};
    bool deterministic = false;  // CacheShape::fixed_chunk is set; streams only
    // Rows of a decode call that may be taken back where the cache cannot be cut:
    // CacheShape::undo_rows. Each costs the memory of one more state of the recurrent layers, for
    // each slot.
    std::int32_t undo_rows = 0;
    bool undo_states = true;  // false: none where they take memory
    // Forks will be kept: a sliding-window model's caches need no more than the window.
    bool forks = true;
    // What each row gives is kept for the model's MTP layers: hidden_states().
    bool keeps_states = false;
    // The cache is of these layers, which decode() gives inputs. The model has them, and others
    // have no use for its own.
    bool mtp_layers = false;
};

class LlamaBackend final : public Backend {
   public:
    // `threads`: of another backend that the same thread calls; null: threads of its own.
    // Errors: model_load_failed (it keeps no cache), invalid_argument, out_of_memory.
    static Result<std::unique_ptr<LlamaBackend>> create(
        std::shared_ptr<const Model> model, const BackendOptions& options,
        std::shared_ptr<ComputeThreads> threads = nullptr);
    // What create() would take; of a model that measures. Errors: invalid_argument.
    static Result<MemoryNeeds> measure(const Model& model, const BackendOptions& options);
    ~LlamaBackend() override;
    LlamaBackend(const LlamaBackend&) = delete;
    LlamaBackend& operator=(const LlamaBackend&) = delete;

    const Model& model() const { return *model_; }
    CacheShape shape() const override { return shape_; }
    std::int32_t compute_threads() const override { return threads_->count(); }
    // Where slots can be cut; CPU only.
    void interrupt_when(std::function<bool()> is_unwanted) override {
        is_unwanted_ = std::move(is_unwanted);
    }
    const std::shared_ptr<ComputeThreads>& threads() { return threads_; }
    DecodeStatus decode(std::span<const BatchRow> rows) override { return decode(rows, {}); }
    // `inputs`: of MTP layers, as many numbers for each row as a state has.
    DecodeStatus decode(std::span<const BatchRow> rows, std::span<float> inputs);
    // What a row of the last decode gave, where states are kept or of MTP layers. Empty: there is
    // none, as of a row without logits of some of these.
    std::span<const float> state(std::size_t row);
    // Of all rows in the slots. Null: they are not kept.
    const std::shared_ptr<HiddenStates>& hidden_states() const { return hidden_states_; }
    // Empty if the row did not want logits or the last decode failed.
    std::span<const float> logits(std::size_t row) override;
    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override;
    bool truncate(SlotId slot, std::int32_t length) override;
    std::size_t fork_size(SlotId slot) override;
    SavedCells fork(SlotId slot) override;
    bool cut_back(SlotId slot, const SavedCells& fork) override;
    std::size_t saved_size(SlotId slot) override;
    SavedCells save(SlotId slot) override;
    SavedCells save_beside(SlotId slot, const SavedCells& like, std::int32_t common) override;
    bool restore(SlotId slot, const SavedCells& saved) override;
    std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) override;
    std::string_view piece(Token token) const override;
    std::string spelled_piece(Token token) const override;
    bool is_end(Token token) const override;
    Token end_token() const override { return model_->vocabulary().end_token(); }

    std::uint64_t cache_bytes() const { return cache_bytes_; }
    // Why the last call failed or was refused; empty after a decode that succeeded.
    const std::string& last_error() const { return last_error_; }
    // Makes a running decode and all later ones fail soon. For shutdown: it spoils the slots of the
    // batch. From any thread. CPU only: a device finishes its pass.
    void set_abort() { aborted_.store(true, std::memory_order_relaxed); }

   private:
    struct FreeContext {
        void operator()(llama_context* context) const;
    };

    LlamaBackend(std::shared_ptr<const Model> model, const CacheShape& shape);

    // Asked by llama.cpp between two operations of a graph.
    static bool stops(void* backend);
    // Empty, or why the rows must not reach llama.cpp.
    std::string find_fault(std::span<const BatchRow> rows) const;
    bool contains(SlotId slot) const { return slot >= 0 && slot < shape_.slot_count; }
    void clear(SlotId slot);
    bool can_cut(SlotId slot, std::int32_t length) const;
    bool shares_windows() const;
    bool is_recurrent() const { return model_->info().is_recurrent && !of_mtp_layers_; }
    bool undoes_states() const { return is_recurrent() && shape_.undo_rows > 0; }
    void find_states(std::span<const BatchRow> rows, const llama_batch& batch);
    void keep_states(std::span<const BatchRow> rows);
    bool copy_in_streams(SlotId from, SlotId to, std::int32_t length);
    bool copy_in_pool(SlotId from, SlotId to, std::int32_t length);
    std::size_t state_size(SlotId slot, std::uint32_t parts);
    SavedCells save_state(SlotId slot, std::uint32_t parts);
    bool read_state(SlotId slot, const SavedCells& saved, std::uint32_t parts);
    bool note_pieces(SlotId slot, StatePieces& pieces);
    PagedSize note_pages(SlotId slot, StatePieces& pieces);
    bool read_pages(SlotId slot, const SavedCells& saved);
    bool read_from(llama_io_read_i& reader, SlotId slot, std::int32_t length);
    void reread_lengths(std::span<const BatchRow> rows);

    std::shared_ptr<const Model> model_;
    CacheShape shape_;
    bool of_mtp_layers_ = false;
    bool states_of_all_rows_ = false;  // that llama.cpp gives; else of rows with logits, or none
    std::shared_ptr<HiddenStates> hidden_states_;
    std::uint64_t cache_bytes_ = 0;
    std::vector<std::int32_t> lengths_;   // positions resident, per slot
    std::vector<std::int32_t> undoable_;  // recurrent: rows of the last decode, per slot
    std::string last_error_;
    std::atomic<bool> aborted_{false};
    std::function<bool()> is_unwanted_;
    bool interrupted_ = false;  // the decode that runs or ran last
    std::unique_ptr<llama_context, FreeContext> context_;
    std::shared_ptr<ComputeThreads> threads_;
    llama_memory_i* memory_ = nullptr;
    std::unique_ptr<BatchArrays> batch_;
    std::vector<bool> has_logits_;           // rows of the last decode
    const float* all_states_ = nullptr;      // of the last decode, where states are of all rows
    std::vector<std::size_t> state_places_;  // in these, of each row
    DrySamplers dry_samplers_;
};

}  // namespace fermata
