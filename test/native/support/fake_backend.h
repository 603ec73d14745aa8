// A backend without a model, for tests. Its logits depend on every (position, token) pair that the
// slot holds, so a wrong reuse, a shifted position or a neighbour's cell changes what is sampled.
// Misuse that the contract forbids throws std::logic_error, which fails the test.
//
// Vocabulary: ids 1 .. 127 are the ASCII bytes, kCallOpen and kCallClose spell the markers in one
// token, kWord.. are words with a blank before them. kEnd and kTurn end a generation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"

namespace fermata::testing {

inline constexpr Token kEnd = 0;
inline constexpr Token kCallOpen = 128;   // "<tool_call>"
inline constexpr Token kCallClose = 129;  // "</tool_call>"
inline constexpr Token kTurn = 130;       // a second end-of-generation token
inline constexpr Token kControl = 131;    // a control token: no text
inline constexpr Token kWord = 132;       // " alpha" and 27 more
inline constexpr Token kVocabulary = 160;

// One token a byte.
std::vector<Token> tokens_of(std::string_view ascii);

struct Cell {
    Token token = 0;
    std::int32_t position = 0;
    std::int64_t shape = 0;  // of the batch that it was computed in, if that matters
};

std::int64_t count_distinct(std::vector<const Cell*> cells);

class FakeBackend : public Backend {
   public:
    // Streams: cells_total follows from the rest when it is 0.
    explicit FakeBackend(CacheShape shape);
    ~FakeBackend() override;

    // What the next decode calls do: call number `call` (the first is 0) returns `status`.
    void set_status(std::int64_t call, DecodeStatus status) { statuses_[call] = status; }
    // Lets the model choose kEnd: about once in `period` tokens; 0 = never.
    void set_end_period(std::uint64_t period) { end_period_ = period; }
    // Lets the model say again, `percent` times in a hundred, what followed the last two tokens
    // when it had them before. Which times depends on the whole history as everything does.
    void set_copies(std::uint64_t percent) { copies_ = percent; }

    // What later saves and restores do.
    void refuse_saves() { saves_ = false; }
    void refuse_restores() { restores_ = false; }

    // From now on the model gives no numbers, or nothing at all.
    void break_logits(bool empty) { broken_ = empty ? 0 : static_cast<std::size_t>(kVocabulary); }

    // As a real one's kernels: what a row gives depends on how many are in its call and which it
    // is.
    void feel_batch_shapes() { feels_shapes_ = true; }

    std::int64_t decode_calls() const { return decode_calls_; }
    std::int64_t rows() const { return rows_; }
    int samplers_made = 0;
    int sizes_asked = 0;

    std::vector<Token> content(SlotId slot) const;
    // The cells of a slot by identity: shared ones compare equal.
    std::vector<const Cell*> cells(SlotId slot) const;
    std::int64_t cells_in_use() const;

    // What a greedy sampler chooses after exactly this history: the reference for generations. With
    // a fixed chunk: all but the last token in chunks as far as they are whole, then one by one.
    Token next_token(std::span<const Token> history) const;

    CacheShape shape() const override { return shape_; }

    void interrupt_when(std::function<bool()> is_unwanted) override {
        is_unwanted_ = std::move(is_unwanted);
    }
    DecodeStatus decode(std::span<const BatchRow> rows) override;

    std::span<const float> logits(std::size_t row) override;

    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override;

    bool truncate(SlotId slot, std::int32_t length) override;

    // A fork has the cells too, so that it is known whose it is.
    std::size_t fork_size(SlotId slot) override;
    SavedCells fork(SlotId slot) override;
    bool cut_back(SlotId slot, const SavedCells& fork) override;

    std::size_t saved_size(SlotId slot) override;
    SavedCells save(SlotId slot) override { return save_beside(slot, {}, 0); }
    SavedCells save_beside(SlotId slot, const SavedCells& like, std::int32_t common) override;
    bool restore(SlotId slot, const SavedCells& saved) override;

    std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) override;

    std::string_view piece(Token token) const override;
    std::string spelled_piece(Token token) const override;
    bool is_end(Token token) const override { return token == kEnd || token == kTurn; }
    Token end_token() const override { return kEnd; }

   private:
    using SlotCells = std::vector<std::shared_ptr<Cell>>;

    static void require(bool holds, const char* rule);
    static std::uint64_t mix(std::uint64_t hash, std::int32_t position, Token token);
    // What a row feels of its batch.
    std::int64_t felt(std::int64_t rows, std::int64_t row) const;
    static std::uint64_t hash_of(const SlotCells& cells);

    // Letters and blanks are likely, the rest is not.
    std::vector<float> logits_of(std::uint64_t hash, std::span<const Token> history) const;

    SlotCells& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }
    const SlotCells& at(SlotId slot) const { return slots_[static_cast<std::size_t>(slot)]; }
    SlotCells& checked(SlotId slot);

    CacheShape shape_;
    std::vector<SlotCells> slots_;
    std::vector<std::vector<float>> logits_;
    std::array<std::string, static_cast<std::size_t>(kVocabulary)> pieces_;
    std::map<std::int64_t, DecodeStatus> statuses_;
    std::function<bool()> is_unwanted_;
    std::uint64_t end_period_ = 0;
    std::uint64_t copies_ = 0;
    bool feels_shapes_ = false;
    std::optional<std::size_t> broken_;
    bool saves_ = true, restores_ = true;
    std::map<SlotId, std::int32_t> undoable_;  // rows of the last decode
    std::int64_t decode_calls_ = 0;
    std::int64_t rows_ = 0;
};

}  // namespace fermata::testing
