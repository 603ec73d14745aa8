#include "core/audit_backend.h"

#include <utility>

namespace fermata {

AuditBackend::AuditBackend(Backend& inner)
    : inner_(inner), shape_(inner.shape()), slots_(static_cast<std::size_t>(shape_.slot_count)) {}

bool AuditBackend::expect(bool holds, const char* rule, std::int64_t where) {
    if (!holds && violation_.empty())
        violation_ = std::string(rule) + " (" + std::to_string(where) + ")";
    return holds;
}

bool AuditBackend::is_slot(SlotId slot) const {
    return slot >= 0 && slot < shape_.slot_count;
}

void AuditBackend::check_rows(std::span<const BatchRow> rows) {
    expect(!rows.empty(), "decode: no rows", 0);
    expect(rows.size() <= static_cast<std::size_t>(shape_.max_rows), "decode: too many rows",
           static_cast<std::int64_t>(rows.size()));
    SlotId last = kNoSlot;
    std::int32_t next = 0;
    for (const BatchRow& row : rows) {
        if (!expect(is_slot(row.slot), "decode: no such slot", row.slot)) return;
        if (row.slot != last) {
            expect(row.slot > last, "decode: slots do not ascend", row.slot);
            expect(!at(row.slot).failed, "decode: slot not cleared after a failure", row.slot);
            last = row.slot;
            next = at(row.slot).length;
        }
        expect(row.token >= 0, "decode: no such token", row.token);
        expect(row.position == next, "decode: position does not follow the slot's length",
               row.slot);
        expect(row.position < shape_.cells_per_sequence, "decode: sequence too long", row.slot);
        ++next;
    }
}

DecodeStatus AuditBackend::decode(std::span<const BatchRow> rows) {
    check_rows(rows);
    last_rows_.clear();
    const DecodeStatus status = inner_.decode(rows);
    if (status == DecodeStatus::kNoCells) {
        expect(shape_.layout == CacheLayout::kUnified, "decode: no cells in the streams layout", 0);
        return status;
    }
    if (status == DecodeStatus::kInterrupted) return status;
    for (const BatchRow& row : rows) {
        if (!is_slot(row.slot)) continue;
        at(row.slot).length = row.position + 1;
        at(row.slot).failed = status == DecodeStatus::kFailed;
    }
    if (status == DecodeStatus::kFailed) return status;
    rows_ += static_cast<std::int64_t>(rows.size());
    last_rows_.assign(rows.begin(), rows.end());
    read_.assign(rows.size(), false);
    return status;
}

std::span<const float> AuditBackend::logits(std::size_t row) {
    if (expect(row < last_rows_.size() && last_rows_[row].wants_logits, "logits: not asked for",
               static_cast<std::int64_t>(row)))
        read_[row] = true;
    return inner_.logits(row);
}

bool AuditBackend::copy_prefix(SlotId from, SlotId to, std::int32_t length) {
    const bool known =
        expect(is_slot(from) && is_slot(to) && from != to, "copy: no such slots", from);
    if (known) {
        expect(!at(from).failed, "copy: source not cleared after a failure", from);
        expect(at(to).length == 0 && !at(to).failed, "copy: target is not empty", to);
        expect(length > 0 && length <= at(from).length, "copy: more than the source holds", from);
        expect(shape_.partial_truncate || length == at(from).length, "copy: a part of a slot",
               from);
    }
    const bool done = inner_.copy_prefix(from, to, length);
    if (known) at(to) = {.length = done ? length : 0};
    return done;
}

bool AuditBackend::truncate(SlotId slot, std::int32_t length) {
    const bool known = expect(is_slot(slot), "truncate: no such slot", slot);
    if (known) {
        expect(length >= 0 && length <= at(slot).length, "truncate: more than the slot holds",
               slot);
        expect(length == 0 || !at(slot).failed, "truncate: slot not cleared after a failure", slot);
    }
    const bool done = inner_.truncate(slot, length);
    if (known && done) {
        at(slot) = {.length = length};
        for (std::size_t i = 0; i < last_rows_.size(); ++i) {
            const BatchRow& row = last_rows_[i];
            const bool cut = row.slot == slot && row.position >= length;
            if (!cut || !row.wants_logits || read_[i]) continue;
            read_[i] = true;
            --rows_;
        }
    }
    return done;
}

std::size_t AuditBackend::fork_size(SlotId slot) {
    expect(is_slot(slot), "fork size: no such slot", slot);
    return inner_.fork_size(slot);
}

SavedCells AuditBackend::fork(SlotId slot) {
    const bool known = expect(is_slot(slot), "fork: no such slot", slot);
    if (known) expect(!at(slot).failed, "fork: slot not cleared after a failure", slot);
    SavedCells fork = inner_.fork(slot);
    if (known && !fork.empty())
        expect(fork.length() == at(slot).length, "fork: another length than the slot's", slot);
    return fork;
}

bool AuditBackend::cut_back(SlotId slot, const SavedCells& fork) {
    const bool known = expect(is_slot(slot), "cut back: no such slot", slot);
    expect(!fork.empty(), "cut back: no fork", slot);
    if (known && !shape_.forks_stand_alone) {
        expect(!at(slot).failed, "cut back: slot not cleared after a failure", slot);
        expect(fork.length() <= at(slot).length, "cut back: more than the slot holds", slot);
    }
    const bool done = inner_.cut_back(slot, fork);
    if (known) at(slot) = {.length = done ? fork.length() : 0};
    return done;
}

std::size_t AuditBackend::saved_size(SlotId slot) {
    expect(is_slot(slot), "saved size: no such slot", slot);
    return inner_.saved_size(slot);
}

SavedCells AuditBackend::save(SlotId slot) {
    return save_beside(slot, {}, 0);
}

SavedCells AuditBackend::save_beside(SlotId slot, const SavedCells& like, std::int32_t common) {
    const bool known = expect(is_slot(slot), "save: no such slot", slot);
    if (known) expect(!at(slot).failed, "save: slot not cleared after a failure", slot);
    if (known)
        expect(common <= std::min(like.length(), at(slot).length), "save: more in common", slot);
    SavedCells saved = like.empty() ? inner_.save(slot) : inner_.save_beside(slot, like, common);
    if (known && !saved.empty())
        expect(saved.length() == at(slot).length, "save: another length than the slot's", slot);
    return saved;
}

bool AuditBackend::restore(SlotId slot, const SavedCells& saved) {
    const bool known = expect(is_slot(slot), "restore: no such slot", slot);
    expect(!saved.empty(), "restore: nothing was saved", slot);
    if (known) expect(at(slot).length == 0 && !at(slot).failed, "restore: slot is not empty", slot);
    const bool done = inner_.restore(slot, saved);
    if (known) at(slot) = {.length = done ? saved.length() : 0};
    return done;
}

std::unique_ptr<Sampler> AuditBackend::make_sampler(const SamplingParams& params) {
    return inner_.make_sampler(params);
}

}  // namespace fermata
