#include "core/cell_ledger.h"

#include <algorithm>

namespace fermata {

CellLedger::CellLedger(const CacheShape& shape)
    : shares_cells_(shape.layout == CacheLayout::kUnified),
      cells_total_(shape.cells_total),
      slots_(static_cast<std::size_t>(shape.slot_count)) {}

void CellLedger::append(SlotId slot, std::int32_t count) {
    Slot& owner = at(slot);
    for (std::int32_t i = 0; i < count; ++i) {
        if (free_.empty()) {
            free_.push_back(static_cast<CellId>(cells_.size()));
            cells_.emplace_back();
        }
        const CellId id = free_.back();
        free_.pop_back();
        cells_[id] = {.owners = 1, .pinned_owners = owner.pinned ? 1 : 0};
        owner.cells.push_back(id);
    }
    (owner.pinned ? cells_used_ : cells_retained_) += count;
}

void CellLedger::copy(SlotId from, SlotId to, std::int32_t length) {
    if (!shares_cells_) {
        append(to, length);
        return;
    }
    at(to).cells.assign(at(from).cells.begin(), at(from).cells.begin() + length);
    for (const CellId id : at(to).cells)
        ++cells_[id].owners;
}

void CellLedger::truncate(SlotId slot, std::int32_t length) {
    Slot& owner = at(slot);
    while (owner.cells.size() > static_cast<std::size_t>(length)) {
        const CellId id = owner.cells.back();
        owner.cells.pop_back();
        Cell& cell = cells_[id];
        const bool was_used = cell.pinned_owners > 0;
        --cell.owners;
        if (owner.pinned) --cell.pinned_owners;
        if (was_used && cell.pinned_owners > 0) continue;
        if (cell.owners == 0) {
            --(was_used ? cells_used_ : cells_retained_);
            free_.push_back(id);
        } else if (was_used) {
            --cells_used_;
            ++cells_retained_;
        }
    }
}

void CellLedger::pin(SlotId slot, bool pinned) {
    Slot& owner = at(slot);
    if (owner.pinned == pinned) return;
    owner.pinned = pinned;
    for (const CellId id : owner.cells) {
        Cell& cell = cells_[id];
        const bool was_used = cell.pinned_owners > 0;
        cell.pinned_owners += pinned ? 1 : -1;
        const bool is_used = cell.pinned_owners > 0;
        if (was_used == is_used) continue;
        cells_used_ += is_used ? 1 : -1;
        cells_retained_ += is_used ? -1 : 1;
    }
}

std::int32_t CellLedger::length(SlotId slot) const {
    return static_cast<std::int32_t>(at(slot).cells.size());
}

CellCounts CellLedger::counts() const {
    return {.used = cells_used_,
            .retained = cells_retained_,
            .free = cells_total_ - cells_used_ - cells_retained_};
}

bool CellLedger::reclaimable(SlotId slot) const {
    return std::ranges::any_of(at(slot).cells,
                               [this](CellId id) { return cells_[id].pinned_owners == 0; });
}

std::string CellLedger::check_integrity() const {
    std::vector<Cell> counted(cells_.size());
    for (const Slot& slot : slots_) {
        for (const CellId id : slot.cells) {
            ++counted[id].owners;
            if (slot.pinned) ++counted[id].pinned_owners;
        }
    }
    std::int64_t used = 0, retained = 0, ownerless = 0;
    for (std::size_t id = 0; id < cells_.size(); ++id) {
        const Cell& cell = cells_[id];
        const auto name = "cells: cell " + std::to_string(id);
        if (cell.owners != counted[id].owners) return name + " has a wrong count of owners";
        if (cell.pinned_owners != counted[id].pinned_owners)
            return name + " has a wrong count of pinned owners";
        if (!shares_cells_ && cell.owners > 1) return name + " is shared between streams";
        (cell.pinned_owners > 0 ? used : cell.owners > 0 ? retained : ownerless) += 1;
    }
    std::vector<CellId> free = free_;
    std::ranges::sort(free);
    if (std::ranges::adjacent_find(free) != free.end()) return "cells: one is free twice";
    if (static_cast<std::int64_t>(free.size()) != ownerless) return "cells: the free list is wrong";
    for (const CellId id : free)
        if (cells_[id].owners != 0) return "cells: an owned cell is on the free list";
    if (used != cells_used_ || retained != cells_retained_) return "cells: the counts are wrong";
    if (counts().free < 0) return "cells: more in use than there are";
    return {};
}

}  // namespace fermata
