// What the scheduler tells of itself.
#include "core/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fermata {

EventBatch Scheduler::take_events() {
    return std::exchange(out_, {});
}

EngineStats Scheduler::stats() const {
    EngineStats stats = totals_;
    stats.running = static_cast<std::int32_t>(running_.size());
    stats.waiting = static_cast<std::int32_t>(waiting_.size());
    stats.held = static_cast<std::int32_t>(sequences_.size()) - stats.running - stats.waiting;
    stats.compute_threads = backend_.compute_threads();
    stats.draft_model_rows = draft_model_ == nullptr ? 0 : draft_model_->rows();
    stats.slots = shape_.slot_count;
    stats.slots_retained = retention_.retained_slots();
    const CellCounts cells = retention_.cells();
    stats.cells_used = cells.used;
    stats.cells_retained = cells.retained;
    stats.cells_free = cells.free;
    const RamCounts ram = retention_.ram();
    stats.ram_limit = ram.limit;
    stats.ram_bytes = ram.bytes;
    stats.ram_sequences = ram.sequences;
    stats.ram_saves = ram.saves;
    stats.ram_restores = ram.restores;
    stats.ram_drops = ram.drops;
    stats.ram_moved_bytes = ram.moved_bytes;
    const DiskCounts disk = retention_.disk();
    stats.disk_limit = disk.limit;
    stats.disk_bytes = disk.bytes;
    stats.disk_files = disk.files;
    stats.disk_saves = disk.saves;
    stats.disk_restores = disk.restores;
    stats.disk_full = disk.full;
    stats.disk_damaged = disk.damaged;
    stats.disk_foreign = disk.foreign;
    stats.disk_failed = disk.failed;
    stats.disk_busy = disk.busy;
    stats.disk_fault = disk.fault;
    stats.forks = ram.forks;
    stats.fork_bytes = ram.fork_bytes;
    stats.fork_saves = ram.fork_saves;
    stats.fork_uses = ram.fork_uses;
    stats.fork_drops = ram.fork_drops;
    stats.copies = retention_.copies();
    stats.evictions = retention_.evictions();
    return stats;
}

std::string Scheduler::check_integrity() const {
    for (const auto& [id, sequence] : sequences_) {
        const std::string name = "sequence " + std::to_string(id);
        if (sequence->state == SequenceState::kRunning && sequence->slot == kNoSlot) {
            return name + " runs without a slot";
        }
        if (sequence->slot == kNoSlot) {
            continue;
        }
        const SlotState expected =
            sequence->state == SequenceState::kRunning ? SlotState::kRunning : SlotState::kHeld;
        if (retention_.state(sequence->slot) != expected) {
            return name + " and its slot disagree on their state";
        }
        const auto resident = retention_.tokens(sequence->slot);
        bool equal = static_cast<std::int32_t>(resident.size()) == sequence->resident;
        for (std::int32_t i = 0; equal && i < sequence->resident; ++i)
            equal = resident[static_cast<std::size_t>(i)] == sequence->token_at(i);
        if (!equal) return name + " and its slot disagree on their tokens";
    }
    for (const SequenceId id : extending_) {
        const auto found = sequences_.find(id);
        if (found == sequences_.end() || found->second->state != SequenceState::kHeld ||
            found->second->slot == kNoSlot || found->second->rows_to_extend() <= 0)
            return "sequence " + std::to_string(id) + " cannot be extended";
    }
    return retention_.check_integrity();
}

}  // namespace fermata
