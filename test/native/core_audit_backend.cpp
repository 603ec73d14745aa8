#include "core/audit_backend.h"

#include <functional>
#include <stdexcept>

#include "check.h"
#include "fake_backend.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

CacheShape shape(CacheLayout layout = CacheLayout::kStreams) {
    return {.layout = layout,
            .slot_count = 3,
            .cells_per_sequence = 8,
            .cells_total = 24,
            .max_rows = 4,
            .micro_batch_rows = 4};
}

BatchRow row(SlotId slot, std::int32_t position, bool wants_logits = false) {
    return {.token = 'a', .position = position, .slot = slot, .wants_logits = wants_logits};
}

// The rule that the calls break, without the number; slot 0 holds two positions beforehand.
std::string breach(const std::function<void(AuditBackend&, FakeBackend&)>& calls) {
    FakeBackend backend(shape());
    AuditBackend audit(backend);
    audit.decode(std::vector{row(0, 0), row(0, 1)});
    CHECK_EQ(audit.violation(), "");
    try {
        calls(audit, backend);
    } catch (const std::logic_error&) {
        // The fake refuses most of it too.
    }
    return audit.violation().substr(0, audit.violation().find(" ("));
}

}  // namespace

TEST(rows_of_successful_calls_are_counted) {
    FakeBackend backend(shape(CacheLayout::kUnified));
    AuditBackend audit(backend);
    backend.set_status(1, DecodeStatus::kNoCells);
    backend.set_status(2, DecodeStatus::kFailed);
    audit.decode(std::vector{row(0, 0), row(1, 0)});
    audit.decode(std::vector{row(0, 1)});
    audit.decode(std::vector{row(0, 1)});
    CHECK_EQ(audit.rows(), 2);
    audit.truncate(0, 0);
    audit.decode(std::vector{row(0, 0), row(1, 1, true)});
    audit.logits(1);
    audit.copy_prefix(1, 2, 1);
    audit.decode(std::vector{row(2, 1)});
    CHECK_EQ(audit.rows(), 5);
    CHECK_EQ(audit.violation(), "");
}

TEST(drafts_that_are_cut_unread_do_not_count_and_those_of_other_slots_do) {
    FakeBackend backend(shape());
    AuditBackend audit(backend);
    audit.decode(std::vector{row(0, 0, true), row(1, 0, true)});
    audit.truncate(0, 0);
    CHECK_EQ(audit.rows(), 1);
}

TEST(every_breach_is_named) {
    using Audit = AuditBackend;
    using Fake = FakeBackend;
    const auto decode = [](std::vector<BatchRow> rows) {
        return breach([rows](Audit& audit, Fake&) { audit.decode(rows); });
    };
    CHECK_EQ(decode({}), "decode: no rows");
    CHECK_EQ(decode({row(1, 0), row(1, 1), row(1, 2), row(1, 3), row(1, 4)}),
             "decode: too many rows");
    CHECK_EQ(decode({row(3, 0)}), "decode: no such slot");
    CHECK_EQ(decode({row(1, 0), row(0, 2)}), "decode: slots do not ascend");
    CHECK_EQ(decode({row(0, 1)}), "decode: position does not follow the slot's length");
    CHECK_EQ(decode({row(0, 2), row(0, 4)}), "decode: position does not follow the slot's length");
    CHECK_EQ(breach([](Audit& audit, Fake&) {
                 audit.decode(std::vector{row(0, 2), row(0, 3), row(0, 4), row(0, 5)});
                 audit.decode(std::vector{row(0, 6), row(0, 7), row(0, 8)});
             }),
             "decode: sequence too long");
    CHECK_EQ(breach([](Audit& audit, Fake& fake) {
                 fake.set_status(1, DecodeStatus::kFailed);
                 audit.decode(std::vector{row(0, 2)});
                 audit.decode(std::vector{row(0, 3)});
             }),
             "decode: slot not cleared after a failure");
    CHECK_EQ(breach([](Audit& audit, Fake& fake) {
                 fake.set_status(1, DecodeStatus::kNoCells);
                 audit.decode(std::vector{row(0, 2)});
             }),
             "decode: no cells in the streams layout");
    CHECK_EQ(breach([](Audit& audit, Fake&) { audit.logits(0); }), "logits: not asked for");
    CHECK_EQ(breach([](Audit& audit, Fake&) { audit.copy_prefix(0, 1, 3); }),
             "copy: more than the source holds");
    CHECK_EQ(breach([](Audit& audit, Fake&) {
                 audit.copy_prefix(0, 1, 1);
                 audit.copy_prefix(0, 1, 1);
             }),
             "copy: target is not empty");
    CHECK_EQ(breach([](Audit& audit, Fake&) { audit.copy_prefix(0, 0, 1); }),
             "copy: no such slots");
    CHECK_EQ(breach([](Audit& audit, Fake&) { audit.truncate(0, 3); }),
             "truncate: more than the slot holds");
}

TEST_MAIN()
