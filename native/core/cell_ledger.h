// Who owns which cache cell. Mirrors the backend's cells by count and sharing; the ids are our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/types.h"

namespace fermata {

struct CellCounts {
    std::int64_t used = 0;      // referenced by running or held slots
    std::int64_t retained = 0;  // referenced by leased or retained slots only
    std::int64_t free = 0;      // negative: more rows were entered than the pool has
};

class CellLedger {
   public:
    explicit CellLedger(const CacheShape& shape);

    // The slot's next `count` positions are resident, in new cells.
    void append(SlotId slot, std::int32_t count);
    // Gives `to`, which is empty and not pinned, the first `length` positions of `from`: in the
    // unified layout the same cells, in streams new ones.
    void copy(SlotId from, SlotId to, std::int32_t length);
    void truncate(SlotId slot, std::int32_t length);
    // A pinned slot's cells count as used.
    void pin(SlotId slot, bool pinned);

    std::int32_t length(SlotId slot) const;
    CellCounts counts() const;
    // Whether dropping unpinned slots, this one among them, could free any of its cells.
    bool reclaimable(SlotId slot) const;
    // Empty when sound, else what is wrong.
    std::string check_integrity() const;

   private:
    using CellId = std::uint32_t;
    struct Cell {
        std::int32_t owners = 0;
        std::int32_t pinned_owners = 0;
    };
    struct Slot {
        std::vector<CellId> cells;  // by position
        bool pinned = false;
    };

    Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }
    const Slot& at(SlotId slot) const { return slots_[static_cast<std::size_t>(slot)]; }

    bool shares_cells_;
    std::int64_t cells_total_;
    std::vector<Slot> slots_;
    std::vector<Cell> cells_;          // every id that was ever given
    std::vector<CellId> free_;         // of those: without owners
    std::int64_t cells_used_ = 0;      // with a pinned owner
    std::int64_t cells_retained_ = 0;  // with owners, none pinned
};

}  // namespace fermata
