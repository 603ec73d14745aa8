// What the scheduler needs of a model and its cache. llama/ implements it; tests have a fake.
// Called by one thread only. No call throws.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "core/sampler.h"
#include "core/saved_cells.h"
#include "core/types.h"

namespace fermata {

enum class CacheLayout : std::uint8_t {
    kStreams,  // each slot has its own cells; a copy moves data; adjacent slot ids share a
               // micro-batch
    kUnified,  // all slots share one pool of cells; a copy is a reference
};

struct CacheShape {
    CacheLayout layout = CacheLayout::kStreams;
    std::int32_t slot_count = 1;
    std::int32_t cells_per_sequence = 0;  // longest sequence
    std::int64_t cells_total = 0;  // streams: slot_count * cells_per_sequence; unified: the pool
    std::int32_t max_rows = 0;     // rows per decode call
    std::int32_t micro_batch_rows = 0;  // rows per pass over the weights
    std::int32_t max_logit_rows = 0;    // rows per decode call that may want logits; 0: all
    // false for recurrent, hybrid and sliding-window models: what they keep of earlier positions is
    // overwritten. Their slots are cut back to forks.
    bool partial_truncate = true;
    // Without partial_truncate: right after a decode call, truncate() takes back so many of the
    // rows that it added to a slot, but not the first of them. 0: none.
    std::int32_t undo_rows = 0;
    // A row's logits have the same bits beside up to 15 other rows of its slot as alone.
    bool keeps_bits = false;
    // A fork is all there is of its positions (recurrent models without attention): no slot needs
    // to hold them.
    bool forks_stand_alone = false;
    // Above 0, a position's values depend on the tokens up to it alone. A decode call then has one
    // row, or this number of rows from a multiple of it on, and all are of one slot. Single rows
    // serve their own sequence: a prefix is reused up to a multiple of the number. Streams only.
    std::int32_t fixed_chunk = 0;
};

struct BatchRow {
    Token token = 0;
    std::int32_t position = 0;
    SlotId slot = 0;
    bool wants_logits = false;
};

enum class DecodeStatus : std::uint8_t {
    kOk,
    kNoCells,      // unified layout: no free cells; nothing was changed
    kInterrupted,  // see Backend::interrupt_when; nothing was changed
    kFailed,       // the slots in the batch must be cleared
};

// Computes rows into slots: all that a DraftModel needs.
class Decoder {
   public:
    virtual ~Decoder() = default;

    virtual CacheShape shape() const = 0;
    // Rows are grouped by slot, slots ascending, positions ascending without gaps from the slot's
    // length. At most shape().max_rows.
    virtual DecodeStatus decode(std::span<const BatchRow> rows) = 0;
    // Logits of rows[row] of the last decode; valid until the next call of decode.
    virtual std::span<const float> logits(std::size_t row) = 0;

    // Makes the first `length` positions of `from` those of `to`, which must be empty. Without
    // partial_truncate: all positions of `from`. false: it cannot, `to` is empty.
    virtual bool copy_prefix(SlotId from, SlotId to, std::int32_t length) = 0;
    // Keeps positions [0, length). length 0 clears the slot. false: it cannot, nothing was changed.
    virtual bool truncate(SlotId slot, std::int32_t length) = 0;
    virtual bool is_end(Token token) const = 0;

    // Positions of the slot whose rows can be computed now, from what else there is of its text.
    // Those before them never can: decode() gets the text without them.
    struct Readable {
        std::int32_t first = 0;
        std::int32_t end = std::numeric_limits<std::int32_t>::max();
    };
    virtual Readable readable(SlotId /*slot*/) const { return {}; }
    // false: rows of tokens that it proposed itself are poorer than those of the same tokens in a
    // text, which replace them.
    virtual bool keeps_proposed() const { return true; }
};

class Backend : public Decoder {
   public:
    // That compute on the processor now; 0: not told.
    virtual std::int32_t compute_threads() const { return 0; }
    // `is_unwanted` is asked often while decode() runs, by its thread. Once it is true, decode()
    // may return kInterrupted.
    virtual void interrupt_when(std::function<bool()> /*is_unwanted*/) {}

    // Without partial_truncate: what cut_back() needs of the slot to give it its present length
    // again, once it has grown. Bytes of it; 0: there is none now.
    virtual std::size_t fork_size(SlotId slot) = 0;
    // Empty: it cannot, or there is no memory. The slot stays.
    virtual SavedCells fork(SlotId slot) = 0;
    // Gives the slot the length of the fork, whose tokens the slot begins with (any slot, with
    // forks_stand_alone). false: it cannot, the slot is empty.
    virtual bool cut_back(SlotId slot, const SavedCells& fork) = 0;

    // Bytes of host memory that save() of the slot takes. 0: it cannot be saved now.
    virtual std::size_t saved_size(SlotId slot) = 0;
    // Copies what the slot holds; the slot stays. Empty: it cannot, or there is no memory.
    virtual SavedCells save(SlotId slot) = 0;
    // The same. Of `like`, which has the slot's first `common` tokens, it shares the pages whose
    // bytes are the same.
    virtual SavedCells save_beside(SlotId slot, const SavedCells& /*like*/,
                                   std::int32_t /*common*/) {
        return save(slot);
    }
    // Gives the slot, which must be empty, what was saved. false: it cannot, the slot is empty.
    virtual bool restore(SlotId slot, const SavedCells& saved) = 0;

    virtual std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) = 0;
    // Bytes that the token adds to the output: user-defined tokens spelled out, control and
    // end-of-generation tokens empty. Valid as long as the backend.
    virtual std::string_view piece(Token token) const = 0;
    // As piece(), but control and end-of-generation tokens are spelled out.
    virtual std::string spelled_piece(Token token) const = 0;
    // An end-of-generation token of this vocabulary.
    virtual Token end_token() const = 0;
};

}  // namespace fermata
