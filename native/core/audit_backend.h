// Watches the calls to a backend: counts the rows that really enter it and checks them against the
// contract of Backend, with its own record of what each slot holds. Passes every call on unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend.h"

namespace fermata {

class AuditBackend final : public Backend {
   public:
    // `inner` outlives this object.
    explicit AuditBackend(Backend& inner);

    // Rows of all decode calls that succeeded, but for rejected drafts: those that were cut before
    // anybody asked for their logits.
    std::int64_t rows() const { return rows_; }
    // The first breach of the contract; empty while there is none.
    const std::string& violation() const { return violation_; }

    CacheShape shape() const override { return inner_.shape(); }
    std::int32_t compute_threads() const override { return inner_.compute_threads(); }
    void interrupt_when(std::function<bool()> is_unwanted) override {
        inner_.interrupt_when(std::move(is_unwanted));
    }
    DecodeStatus decode(std::span<const BatchRow> rows) override;
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
    std::string_view piece(Token token) const override { return inner_.piece(token); }
    std::string spelled_piece(Token token) const override { return inner_.spelled_piece(token); }
    bool is_end(Token token) const override { return inner_.is_end(token); }
    Token end_token() const override { return inner_.end_token(); }

   private:
    struct Slot {
        std::int32_t length = 0;
        bool failed = false;  // in a batch that failed and not cleared since
    };

    // Notes the breach if `holds` is false; returns `holds`.
    bool expect(bool holds, const char* rule, std::int64_t where);
    bool is_slot(SlotId slot) const;
    Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }
    void check_rows(std::span<const BatchRow> rows);

    Backend& inner_;
    CacheShape shape_;
    std::vector<Slot> slots_;
    std::vector<BatchRow> last_rows_;  // of the last decode
    std::vector<bool> read_;           // of these: their logits were asked for
    std::int64_t rows_ = 0;
    std::string violation_;
};

}  // namespace fermata
