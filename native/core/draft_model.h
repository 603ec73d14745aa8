// A second, smaller model of the same vocabulary, or MTP layers of the first one, which say what
// sequences may go on with. It reads along in a cache of its own, each sequence in the slot of the
// same number: what that has in common with the sequence stays, the rest is read when a draft is
// wanted. It never decides what a sequence says, so whatever goes wrong here costs drafts and
// nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/request.h"
#include "core/types.h"

namespace fermata {

class DraftModel {
   public:
    // Milliseconds; core has no clock.
    using Clock = std::function<double()>;

    // Rows of texts that it reads in one call of propose(): as many as take kReadFor milliseconds,
    // since whatever runs waits for them.
    static constexpr std::int32_t kMostRead = 256;
    static constexpr std::int32_t kLeastRead = 32;
    static constexpr double kReadFor = 100.0;
    // A draft ends at a token that it is less sure of: those behind it are seldom right.
    static constexpr double kLeastSure = 0.05;

    // The cache of `backend` has a slot for each of the sequences' and can be cut back, and decodes
    // kMostRead rows at once. Both models know the tokens below `vocabulary_size`.
    DraftModel(std::unique_ptr<Decoder> backend, std::int32_t vocabulary_size, Clock clock);

    struct Reader {
        SlotId slot = kNoSlot;
        std::span<const Token> tokens;  // at least one
        std::int32_t most = 0;          // tokens of its draft, at least one
        Salt salt = 0;                  // texts are copied from slots of the same alone
        // Milliseconds that reading its text may take: where it takes longer it is not read.
        double worth = std::numeric_limits<double>::infinity();
    };

    struct Answer {
        std::vector<Token> tokens = {};  // the likeliest continuation
        bool has_read = false;           // no tokens, all the same: it goes on too uncertainly
    };
    // One for each, slots ascending. A text that is not read to its end has none yet, and one that
    // is too long or has tokens of its model alone never has.
    std::vector<Answer> propose(std::span<const Reader> readers);

    // Learns what reading and a token more take, before there is a text: whole texts would be read
    // to learn that they do not pay. Once, at the beginning.
    void measure();
    bool is_measured() const { return !rounds_.empty(); }
    // How long a token more of each takes, of so many sequences; 0: nothing is measured.
    double milliseconds_for(std::size_t sequences) const;
    // How long propose() and measure() took since the last call of this.
    double take_spent();
    // In all.
    std::int64_t rows() const { return rows_; }

   private:
    struct Text {
        std::vector<Token> tokens = {};
        Salt salt = 0;
        std::int64_t last_decode = 0;  // that had rows of it
    };
    // Where the longest beginning of a text is.
    struct Source {
        SlotId slot;
        std::int32_t length;
    };
    // A reader that has read its text: its draft grows.
    struct Open {
        std::size_t reader;
        std::size_t row;  // of the last decode
    };
    struct Average {
        double value = 0.0;
        std::int32_t count = 0;
        void add(double seen);
    };

    Text& text(SlotId slot) { return texts_[static_cast<std::size_t>(slot)]; }
    std::int32_t shared(SlotId slot, const Reader& reader) const;
    Source source_of(const Reader& reader) const;
    bool can_read(const Reader& reader) const;
    bool is_worth_reading(const Reader& reader, std::int32_t length) const;
    std::int32_t bring_to_common(const Reader& reader);
    void share_rows(std::span<std::int32_t> rows) const;
    std::vector<Open> read(std::span<const Reader> readers);
    std::vector<Open> extend(std::span<const Reader> readers, std::span<const Open> open,
                             std::vector<Answer>& answers);
    Token next_token(std::size_t row);
    void drop_proposed(std::span<const Reader> readers);
    bool decode();
    bool forget_oldest();
    void forget(SlotId slot);

    std::unique_ptr<Decoder> backend_;
    CacheShape shape_;
    std::size_t vocabulary_size_;
    Clock clock_;
    std::vector<Text> texts_;  // in the slots
    std::vector<BatchRow> batch_;
    std::int64_t decodes_ = 0;
    Average read_row_;                       // milliseconds
    std::map<std::size_t, Average> rounds_;  // by sequences
    double spent_ = 0.0;
    std::int64_t rows_ = 0;
};

}  // namespace fermata
