// A backend that computes nothing and counts what a real one would have computed and moved. The
// real scheduler runs on it in simulated time: a table of measured times says what a step takes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/micro_batches.h"

namespace fermata {

// What one step computed and moved.
struct Work {
    std::vector<Pass> passes;          // over the weights
    std::int64_t decode_attended = 0;  // positions that rows alone in their slot attend to
    std::int64_t chunk_attended = 0;   // the same, of rows beside others of their slot
    std::int64_t saved_bytes = 0;      // from slots to host memory
    std::int64_t restored_bytes = 0;   // and back
};

// Tokens of conversations: numbers that follow from a seed and a position, so that two
// conversations share a prefix exactly where they are told to.
std::vector<Token> tokens_of(std::uint64_t seed, std::int32_t begin, std::int32_t end);

class SimulatedBackend final : public Backend {
   public:
    SimulatedBackend(CacheShape shape, std::int64_t bytes_per_token);

    // Moves out what was done since the last call.
    Work take_work();

    CacheShape shape() const override { return shape_; }
    DecodeStatus decode(std::span<const BatchRow> rows) override;
    std::span<const float> logits(std::size_t row) override;
    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override;
    bool truncate(SlotId slot, std::int32_t length) override;
    std::size_t fork_size(SlotId) override { return 0; }
    SavedCells fork(SlotId) override { return {}; }
    bool cut_back(SlotId, const SavedCells&) override { return false; }
    std::size_t saved_size(SlotId slot) override;
    SavedCells save(SlotId slot) override;
    SavedCells save_beside(SlotId slot, const SavedCells& like, std::int32_t common) override;
    bool restore(SlotId slot, const SavedCells& saved) override;
    std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) override;
    std::string_view piece(Token) const override { return "a"; }
    std::string spelled_piece(Token) const override { return "a"; }
    bool is_end(Token token) const override { return token == end_token(); }
    Token end_token() const override { return 0; }

   private:
    std::int32_t& length(SlotId slot) { return lengths_[static_cast<std::size_t>(slot)]; }

    CacheShape shape_;
    std::int64_t bytes_per_token_;
    std::vector<std::int32_t> lengths_;  // by slot
    Work work_;
};

}  // namespace fermata
