// The arrays behind a llama_batch, allocated once.
#pragma once

#include <span>
#include <vector>

#include "core/backend.h"
#include "llama.h"

namespace fermata {

class BatchArrays {
   public:
    explicit BatchArrays(std::int32_t max_rows)
        : tokens_(size(max_rows)),
          positions_(size(max_rows)),
          slots_(size(max_rows)),
          slot_counts_(size(max_rows), 1),
          slot_pointers_(size(max_rows)),
          outputs_(size(max_rows)) {
        for (std::size_t i = 0; i < slots_.size(); ++i)
            slot_pointers_[i] = &slots_[i];
    }

    // At most max_rows rows. `inputs`: of each row, beside its token; may be empty. Valid until the
    // next call.
    llama_batch fill(std::span<const BatchRow> rows, std::span<float> inputs = {}) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            tokens_[i] = rows[i].token;
            positions_[i] = rows[i].position;
            slots_[i] = rows[i].slot;
            outputs_[i] = rows[i].wants_logits ? 1 : 0;
        }
        llama_batch batch{};
        batch.n_tokens = static_cast<std::int32_t>(rows.size());
        batch.token = tokens_.data();
        if (!inputs.empty()) batch.embd = inputs.data();
        batch.pos = positions_.data();
        batch.n_seq_id = slot_counts_.data();
        batch.seq_id = slot_pointers_.data();
        batch.logits = outputs_.data();
        return batch;
    }

   private:
    static std::size_t size(std::int32_t rows) { return static_cast<std::size_t>(rows); }

    std::vector<llama_token> tokens_;
    std::vector<llama_pos> positions_;
    std::vector<llama_seq_id> slots_;
    std::vector<std::int32_t> slot_counts_;
    std::vector<llama_seq_id*> slot_pointers_;
    std::vector<std::int8_t> outputs_;
};

}  // namespace fermata
