// Thousands of random operations on KvRetention against a plain record of what every slot must
// hold. The record knows no trees and no ledgers: prefixes are found by comparing vectors, cells
// are counted by identity in the fake backend.
#include <algorithm>
#include <random>
#include <set>

#include "check.h"
#include "core/audit_backend.h"
#include "core/kv_retention.h"
#include "fake_backend.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

struct Record {
    SlotState state = SlotState::kFree;
    std::vector<Token> tokens;   // resident
    std::vector<Token> planned;  // to follow them
    Milliseconds last_used = 0;
    Milliseconds until = 0;
};

bool is_evictable(const Record& record) {
    return record.state == SlotState::kLeased || record.state == SlotState::kRetained;
}

std::int32_t common(const std::vector<Token>& a, const std::vector<Token>& b) {
    return static_cast<std::int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

class Trial {
   public:
    Trial(CacheShape shape, std::uint32_t seed)
        : shape_(shape),
          backend_(shape),
          audit_(backend_),
          retention_(audit_),
          records_(static_cast<std::size_t>(shape.slot_count)),
          random_(seed) {}

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            ++now_;
            before_ = records_;
            evictions_before_ = retention_.evictions();
            operate();
            compare();
        }
        // The trial was worth its time only if it reached all this.
        CHECK(reused_ > 0);
        CHECK(declined_ > 0);
        CHECK(retention_.evictions() > 0);
        CHECK(moved_ > 0 || shape_.layout == CacheLayout::kUnified);
    }

   private:
    std::size_t below(std::size_t limit) { return random_() % limit; }
    Record& at(SlotId slot) { return records_[static_cast<std::size_t>(slot)]; }
    bool is_streams() const { return shape_.layout == CacheLayout::kStreams; }

    // Prompts branch off a small family tree in steps of 20 tokens, so that prefixes of all kinds
    // occur.
    std::vector<Token> prompt() {
        std::vector<Token> tokens;
        for (auto parts = below(5) + 1; parts > 0; --parts) {
            const auto kind = static_cast<Token>('a' + below(2));
            tokens.insert(tokens.end(), 20, kind);
        }
        for (auto tail = below(4); tail > 0; --tail)
            tokens.push_back(static_cast<Token>('a' + below(3)));
        return tokens;
    }

    SlotId any(std::initializer_list<SlotState> states) {
        std::vector<SlotId> found;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot)
            if (std::ranges::count(states, at(slot).state) > 0) found.push_back(slot);
        return found.empty() ? kNoSlot : found[below(found.size())];
    }

    void operate() {
        switch (below(14)) {
            case 0:
            case 1:
            case 2:
                return acquire();
            case 3:
            case 4:
                return plan();
            case 5:
            case 6:
                return decode();
            case 7:
                return forget();
            case 8:
                return hold();
            case 9:
                return resume();
            case 10:
            case 11:
                return retain();
            case 12:
                return below(3) == 0 ? drop() : expire();
            case 13:
                return below(8) == 0 ? clear_retained() : ensure_cells();
        }
    }

    void acquire() {
        const std::vector<Token> tokens = prompt();
        const auto most = static_cast<std::int32_t>(tokens.size()) - 1;
        std::int32_t best = 0, promised = 0;
        bool room = false;
        for (const Record& record : records_) {
            room = room || record.state == SlotState::kFree || is_evictable(record);
            const std::int32_t resident = std::min(common(record.tokens, tokens), most);
            const bool whole = resident == static_cast<std::int32_t>(record.tokens.size());
            if (shape_.partial_truncate || whole) best = std::max(best, resident);
            if (record.state != SlotState::kRunning || !shape_.partial_truncate) continue;
            std::vector<Token> path = record.tokens;
            path.insert(path.end(), record.planned.begin(), record.planned.end());
            promised = std::max(promised, std::min(common(path, tokens), most));
        }
        const Promise promise = retention_.lookup(tokens);
        CHECK_EQ(promise.resident, best);
        CHECK_EQ(promise.promised, std::max(best, promised));

        const auto placement = retention_.acquire(tokens, now_);
        CHECK_EQ(placement.has_value(), room);
        if (!placement) {
            ++declined_;
            return;
        }
        const std::int32_t least = is_streams() ? best - kMinCopiedPositions + 1 : best;
        CHECK(placement->reused <= best && placement->reused >= least);
        if (placement->reused > 0) ++reused_;
        subject_ = placement->slot;
        adopt();
        const auto rest = tokens.begin() + placement->reused;
        at(subject_) = {.state = SlotState::kRunning,
                        .tokens = {tokens.begin(), rest},
                        .planned = {rest, tokens.end()},
                        .last_used = now_,
                        .until = 0};
        retention_.plan(subject_, at(subject_).planned);
        check_placing();
    }

    // After an acquire or resume: running and held slots are as before; of the others some were
    // evicted, oldest first, and in streams retained ones may have moved.
    void adopt() {
        std::multiset<std::vector<Token>> missing;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            Record& record = at(slot);
            if (slot == subject_) continue;
            if (record.state == SlotState::kRunning || record.state == SlotState::kHeld) continue;
            if (record.state == SlotState::kLeased && retention_.state(slot) == SlotState::kLeased)
                continue;
            const auto tokens = retention_.tokens(slot);
            const std::vector<Token> now(tokens.begin(), tokens.end());
            if (now == record.tokens && retention_.state(slot) == record.state) continue;
            CHECK(retention_.state(slot) == SlotState::kFree ||
                  retention_.state(slot) == SlotState::kRetained);
            record = {};
            if (now.empty()) continue;
            // It moved here from where it was retained before.
            ++moved_;
            CHECK(is_streams());
            const auto from = std::ranges::find_if(before_, [&](const Record& old) {
                return old.state == SlotState::kRetained && old.tokens == now;
            });
            CHECK(from != before_.end());
            record = *from;
        }
        check_losses();
    }

    // Nobody lost tokens but for the slot that runs now and one eviction, the oldest. Where several
    // slots held the same tokens or the subject was taken over from one, only the count is known.
    void check_losses() {
        std::int64_t held_before = 0, held_now = 0;
        for (const Record& record : before_)
            held_before += is_evictable(record) ? 1 : 0;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot)
            held_now += slot != subject_ && is_evictable(at(slot)) ? 1 : 0;
        const std::int64_t evicted = retention_.evictions() - evictions_before_;
        CHECK(evicted <= 1);
        const std::int64_t gone = held_before - held_now - evicted;
        CHECK(gone == 0 || gone == 1);  // 1: taken over
        if (evicted == 0) return;
        for (const Record& record : before_)
            CHECK(record.state != SlotState::kFree);
        bool lost_leased = false, kept_retained = false;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            const Record& old = before_[static_cast<std::size_t>(slot)];
            lost_leased = lost_leased || (old.state == SlotState::kLeased && gone == 0 &&
                                          at(slot).state != SlotState::kLeased);
            kept_retained =
                kept_retained || (slot != subject_ && at(slot).state == SlotState::kRetained);
        }
        // A retained provider may stay while a leased slot makes room for its copy, but only one.
        if (lost_leased && kept_retained) {
            std::int64_t retained = 0;
            for (const Record& old : before_)
                retained += old.state == SlotState::kRetained ? 1 : 0;
            CHECK_EQ(retained, 1);
        }
    }

    int runs(SlotId instead) {
        int runs = 0;
        bool last = false;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            const bool running =
                slot == instead || (slot != subject_ && at(slot).state == SlotState::kRunning);
            runs += running && !last ? 1 : 0;
            last = running;
        }
        return runs;
    }

    // No slot that is still free would have left fewer groups of running slots.
    void check_placing() {
        if (!is_streams()) return;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            if (before_[static_cast<std::size_t>(slot)].state == SlotState::kFree)
                CHECK(runs(slot) >= runs(subject_));
        }
    }

    void plan() {
        const SlotId slot = any({SlotState::kRunning});
        if (slot == kNoSlot || at(slot).tokens.size() + at(slot).planned.size() > 150) return;
        std::vector<Token> tokens;
        for (auto count = below(3) + 1; count > 0; --count)
            tokens.push_back(static_cast<Token>('a' + below(2)));
        retention_.plan(slot, tokens);
        at(slot).planned.insert(at(slot).planned.end(), tokens.begin(), tokens.end());
    }

    void decode() {
        const SlotId slot = any({SlotState::kRunning});
        if (slot == kNoSlot || at(slot).planned.empty()) return;
        Record& record = at(slot);
        const auto count = below(3) == 0 ? below(record.planned.size()) + 1 : record.planned.size();
        if (retention_.cells().free < static_cast<std::int64_t>(count)) return;
        std::vector<BatchRow> rows;
        for (std::size_t i = 0; i < count; ++i) {
            rows.push_back({.token = record.planned[i],
                            .position = static_cast<std::int32_t>(record.tokens.size()),
                            .slot = slot});
            record.tokens.push_back(record.planned[i]);
        }
        record.planned.erase(record.planned.begin(),
                             record.planned.begin() + static_cast<std::ptrdiff_t>(count));
        CHECK(audit_.decode(rows) == DecodeStatus::kOk);
        retention_.commit(slot, static_cast<std::int32_t>(count));
    }

    void forget() {
        const SlotId slot = any({SlotState::kRunning});
        if (slot == kNoSlot || below(3) != 0) return;
        retention_.forget_planned(slot);
        at(slot).planned.clear();
    }

    void hold() {
        const SlotId slot = any({SlotState::kRunning});
        if (slot == kNoSlot || at(slot).tokens.empty()) return;
        retention_.forget_planned(slot);
        at(slot).planned.clear();
        at(slot).state = SlotState::kHeld;
        at(slot).until = now_ + static_cast<Milliseconds>(below(50));
        retention_.hold(slot, at(slot).until);
    }

    void resume() {
        const SlotId slot = any({SlotState::kHeld});
        if (slot == kNoSlot) return;
        Record record = at(slot);
        record.state = SlotState::kRunning;
        const SlotId stayed = slot;
        subject_ = retention_.resume(slot);
        if (subject_ != stayed) {
            CHECK(is_streams());
            CHECK(at(subject_).state == SlotState::kFree ||
                  at(subject_).state == SlotState::kRetained);
            CHECK(runs(subject_) < runs(stayed));
            at(stayed) = {};
            ++moved_;
        }
        at(subject_) = {};
        adopt();
        at(subject_) = record;
        check_placing();
    }

    void retain() {
        const SlotId slot = any({SlotState::kRunning, SlotState::kHeld});
        if (slot == kNoSlot) return;
        Record& record = at(slot);
        const Milliseconds lease =
            below(3) == 0 ? now_ + static_cast<Milliseconds>(below(40)) + 1 : 0;
        retention_.retain(slot, now_, lease);
        record.planned.clear();
        record.state = lease > 0 ? SlotState::kLeased : SlotState::kRetained;
        record.until = lease;
        record.last_used = now_;
        if (record.tokens.empty()) record = {};
    }

    void drop() {
        const auto slot = static_cast<SlotId>(below(records_.size()));
        retention_.drop(slot);
        at(slot) = {};
    }

    void expire() {
        std::vector<SlotId> expected;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            if (at(slot).until > now_) continue;
            if (at(slot).state == SlotState::kHeld) expected.push_back(slot);
            if (at(slot).state == SlotState::kLeased) at(slot).state = SlotState::kRetained;
        }
        retention_.end_leases(now_);
        for (const SlotId slot : expected) {
            retention_.drop(slot);
            at(slot) = {};
        }
    }

    void clear_retained() {
        retention_.clear_retained();
        for (Record& record : records_)
            if (is_evictable(record)) record = {};
    }

    void ensure_cells() {
        const auto count = static_cast<std::int64_t>(below(60));
        const CellCounts counts = retention_.cells();
        const bool enough = is_streams() || counts.free + counts.retained >= count;
        CHECK_EQ(retention_.ensure_cells(count), enough);
        if (is_streams() || !enough) {
            CHECK_EQ(retention_.evictions(), evictions_before_);
            return;
        }
        CHECK(retention_.cells().free >= count);
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot)
            if (is_evictable(at(slot)) && retention_.state(slot) == SlotState::kFree) at(slot) = {};
    }

    void compare() {
        CHECK_EQ(retention_.check_integrity(), "");
        CHECK_EQ(audit_.violation(), "");
        std::vector<const Cell*> used, all;
        std::int32_t retained = 0;
        for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
            const Record& record = at(slot);
            const auto tokens = retention_.tokens(slot);
            CHECK(retention_.state(slot) == record.state);
            CHECK(std::ranges::equal(tokens, record.tokens));
            CHECK(backend_.content(slot) == record.tokens);
            const auto cells = backend_.cells(slot);
            all.insert(all.end(), cells.begin(), cells.end());
            if (is_evictable(record))
                ++retained;
            else
                used.insert(used.end(), cells.begin(), cells.end());
        }
        CHECK_EQ(retention_.retained_slots(), retained);
        const CellCounts counts = retention_.cells();
        CHECK_EQ(counts.used, count_distinct(std::move(used)));
        CHECK_EQ(counts.used + counts.retained, count_distinct(std::move(all)));
        CHECK_EQ(counts.used + counts.retained + counts.free, backend_.shape().cells_total);
    }

    CacheShape shape_;
    FakeBackend backend_;
    AuditBackend audit_;
    KvRetention retention_;
    std::vector<Record> records_;
    std::vector<Record> before_;  // as records_ were before this step
    std::int64_t evictions_before_ = 0;
    std::mt19937 random_;
    Milliseconds now_ = 0;
    SlotId subject_ = kNoSlot;  // the slot that the step gave
    int reused_ = 0, declined_ = 0, moved_ = 0;
};

CacheShape shape(CacheLayout layout, bool partial_truncate) {
    return {.layout = layout,
            .slot_count = 7,
            .cells_per_sequence = 200,
            .cells_total = layout == CacheLayout::kUnified ? 500 : 0,
            .max_rows = 200,
            .micro_batch_rows = 64,
            .partial_truncate = partial_truncate};
}

constexpr int kSteps = 2000;

}  // namespace

TEST(streams) {
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
        Trial(shape(CacheLayout::kStreams, true), seed).run(kSteps);
}

TEST(unified) {
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
        Trial(shape(CacheLayout::kUnified, true), seed).run(kSteps);
}

TEST(streams_of_models_that_cannot_truncate) {
    for (const std::uint32_t seed : {1u, 2u})
        Trial(shape(CacheLayout::kStreams, false), seed).run(kSteps);
}

TEST(unified_models_that_cannot_truncate) {
    for (const std::uint32_t seed : {1u, 2u})
        Trial(shape(CacheLayout::kUnified, false), seed).run(kSteps);
}

TEST_MAIN()
