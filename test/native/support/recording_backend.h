// Passes every call on and keeps the logits by what they followed: the tokens of the slot up to and
// with the row. Two runs are compared history by history, whatever their batches were.
#pragma once

#include <map>
#include <vector>

#include "core/backend.h"

namespace fermata::testing {

class RecordingBackend final : public Backend {
   public:
    using Records = std::map<std::vector<Token>, std::vector<float>>;

    explicit RecordingBackend(Backend& inner)
        : inner_(inner), slots_(static_cast<std::size_t>(inner.shape().slot_count)) {}

    const Records& records() const { return records_; }

    CacheShape shape() const override { return inner_.shape(); }
    DecodeStatus decode(std::span<const BatchRow> rows) override {
        const DecodeStatus status = inner_.decode(rows);
        if (status != DecodeStatus::kOk) return status;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            auto& history = at(rows[i].slot);
            history.push_back(rows[i].token);
            if (!rows[i].wants_logits) continue;
            const auto logits = inner_.logits(i);
            records_[history].assign(logits.begin(), logits.end());
        }
        return status;
    }
    std::span<const float> logits(std::size_t row) override { return inner_.logits(row); }
    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override {
        const bool could = inner_.copy_prefix(from, to, length);
        at(to).assign(at(from).begin(), at(from).begin() + (could ? length : 0));
        return could;
    }
    bool truncate(SlotId slot, std::int32_t length) override {
        const bool could = inner_.truncate(slot, length);
        if (could) at(slot).resize(static_cast<std::size_t>(length));
        return could;
    }
    std::size_t fork_size(SlotId slot) override { return inner_.fork_size(slot); }
    SavedCells fork(SlotId slot) override {
        SavedCells fork = inner_.fork(slot);
        saved_[key(fork)] = at(slot);
        return fork;
    }
    bool cut_back(SlotId slot, const SavedCells& fork) override {
        const bool could = inner_.cut_back(slot, fork);
        at(slot) = could ? saved_.at(key(fork)) : std::vector<Token>();
        return could;
    }
    std::size_t saved_size(SlotId slot) override { return inner_.saved_size(slot); }
    SavedCells save(SlotId slot) override {
        SavedCells saved = inner_.save(slot);
        saved_[key(saved)] = at(slot);
        return saved;
    }
    SavedCells save_beside(SlotId slot, const SavedCells& like, std::int32_t common) override {
        SavedCells saved = inner_.save_beside(slot, like, common);
        saved_[key(saved)] = at(slot);
        return saved;
    }
    bool restore(SlotId slot, const SavedCells& saved) override {
        const bool could = inner_.restore(slot, saved);
        at(slot) = could ? saved_.at(key(saved)) : std::vector<Token>();
        return could;
    }
    std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) override {
        return inner_.make_sampler(params);
    }
    std::string_view piece(Token token) const override { return inner_.piece(token); }
    std::string spelled_piece(Token token) const override { return inner_.spelled_piece(token); }
    bool is_end(Token token) const override { return inner_.is_end(token); }
    Token end_token() const override { return inner_.end_token(); }

   private:
    // The first page is never shared.
    static const std::byte* key(const SavedCells& saved) {
        return saved.empty() ? nullptr : saved.page(0).data();
    }
    std::vector<Token>& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }

    Backend& inner_;
    std::vector<std::vector<Token>> slots_;
    std::map<const std::byte*, std::vector<Token>> saved_;  // by where its bytes are
    Records records_;
};

}  // namespace fermata::testing
