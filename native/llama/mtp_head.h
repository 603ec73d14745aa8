// A model's own MTP layers as what a DraftModel reads with. Their input at a position is that
// token, and what the model's last layer gave for the one before: of rows that the engine has
// computed its HiddenStates have it, behind them it is what these layers gave themselves.
//
// Their cache has its own slots, as that of any draft model. Rows whose states are not known are
// lacking in it: the text's first one; and where there was no memory for states, all up to there.
// Then drafts are poorer, and verified all the same.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/backend.h"
#include "llama/hidden_states.h"
#include "llama/llama_backend.h"

namespace fermata {

class MtpHead final : public Decoder {
   public:
    // `cells`: of the MTP layers (BackendOptions::mtp_layers).
    MtpHead(std::unique_ptr<LlamaBackend> cells, std::shared_ptr<const HiddenStates> states);

    CacheShape shape() const override { return cells_->shape(); }
    Readable readable(SlotId slot) const override;
    bool keeps_proposed() const override { return false; }
    // Positions may leave some out.
    DecodeStatus decode(std::span<const BatchRow> rows) override;
    std::span<const float> logits(std::size_t row) override { return cells_->logits(row); }
    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override;
    bool truncate(SlotId slot, std::int32_t length) override;
    bool is_end(Token token) const override { return cells_->is_end(token); }

   private:
    struct Slot {
        std::vector<std::int32_t> positions;  // of the text, whose rows are in the cache
        std::vector<float> last;  // what came of the last row, the input of the next; may be empty
    };

    Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }
    static std::int32_t count_below(const Slot& slot, std::int32_t length);
    void find_input(const BatchRow& row, std::span<float> input);

    std::unique_ptr<LlamaBackend> cells_;
    std::shared_ptr<const HiddenStates> states_;
    std::vector<Slot> slots_;
    std::vector<BatchRow> rows_;
    std::vector<float> inputs_;
};

}  // namespace fermata
