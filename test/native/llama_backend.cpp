// The backend on a real model: FERMATA_TEST_MODEL, or the first argument.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "no_threads.h"
#include "real_model.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int32_t kPrompt = 70;

struct Setup {
    BackendOptions options;
    std::unique_ptr<LlamaBackend> backend;

    explicit Setup(CacheLayout layout, std::int32_t threads = 1,
                   FlashAttention flash_attention = FlashAttention::kAuto) {
        options.flash_attention = flash_attention;
        options.layout = layout;
        options.slot_count = 4;
        options.cells_per_sequence = 512;
        options.cells_total = 4096;  // room for a window of each slot, too
        options.max_rows = 128;
        options.micro_batch_rows = 64;
        // Threads of one graph wait for each other by spinning: on a busy machine two take far
        // longer than one.
        options.threads = threads;
        auto outcome = LlamaBackend::create(model, options);
        if (!outcome.ok()) check::fail(__FILE__, __LINE__, outcome.error().message);
        backend = std::move(outcome.value());
    }

    // Decodes words [from, to) of a seed in one batch; logits of the last one.
    std::vector<float> decode(SlotId slot, std::int32_t seed, std::int32_t from, std::int32_t to) {
        std::vector<BatchRow> rows;
        for (std::int32_t at = from; at < to; ++at)
            rows.push_back({word(seed, at), at, slot, at + 1 == to});
        if (backend->decode(rows) != DecodeStatus::kOk)
            check::fail(__FILE__, __LINE__, backend->last_error());
        const auto logits = backend->logits(rows.size() - 1);
        return {logits.begin(), logits.end()};
    }
    // A part of a slot: models that cannot be cut anywhere go back to a fork.
    void copy(SlotId from, SlotId to, std::int32_t length, const SavedCells& fork) {
        const bool cuts = backend->shape().partial_truncate;
        CHECK(backend->copy_prefix(from, to, cuts ? length : kPrompt + 20));
        CHECK(cuts || backend->cut_back(to, fork));
    }
    void refuse(const std::vector<BatchRow>& rows) {
        if (backend->decode(rows) != DecodeStatus::kFailed)
            check::fail(__FILE__, __LINE__, "was not refused");
        CHECK(!backend->last_error().empty());
    }
};

std::vector<std::byte> bytes_of(const SavedCells& saved) {
    std::vector<std::byte> bytes;
    for (std::size_t page = 0; page < saved.page_count(); ++page)
        bytes.insert(bytes.end(), saved.page(page).begin(), saved.page(page).end());
    return bytes;
}

void for_both_layouts(void (*body)(CacheLayout)) {
    body(CacheLayout::kStreams);
    body(CacheLayout::kUnified);
}

// What a model gives when nothing was ever shared or taken back.
std::vector<float> fresh(CacheLayout layout, std::int32_t seed, std::int32_t cut,
                         std::int32_t end) {
    Setup setup(layout);
    setup.decode(0, seed, 0, cut);
    return setup.decode(0, seed, cut, end);
}

float distance(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = a.size() == b.size() ? 0.0f : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

// Streams: to the bit. Unified: other cells lie between, so sums round differently; far less than
// one other token in the prompt would change.
bool agrees(CacheLayout layout, const std::vector<float>& actual,
            const std::vector<float>& expected) {
    if (layout == CacheLayout::kStreams) return actual == expected;
    static const float noise = [] {
        Setup other(CacheLayout::kUnified);
        other.decode(0, 1, 0, kPrompt - 1);
        const BatchRow row{word(2, 0), kPrompt - 1, 0, true};
        CHECK(other.backend->decode({&row, 1}) == DecodeStatus::kOk);
        const auto changed = other.decode(0, 1, kPrompt, kPrompt + 1);
        return distance(changed, fresh(CacheLayout::kUnified, 1, kPrompt, kPrompt + 1)) / 3;
    }();
    return distance(actual, expected) < noise;
}

}  // namespace

TEST(the_same_batches_give_the_same_logits) {
    for_both_layouts([](CacheLayout layout) {
        CHECK(fresh(layout, 1, kPrompt, kPrompt + 1) == fresh(layout, 1, kPrompt, kPrompt + 1));
        CHECK(distance(fresh(layout, 1, kPrompt, kPrompt + 1),
                       fresh(layout, 2, kPrompt, kPrompt + 1)) > 0.5f);
    });
}

TEST(truncate_and_redo_is_exact) {
    for_both_layouts([](CacheLayout layout) {
        const auto expected = fresh(layout, 1, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        setup.decode(0, 2, kPrompt, kPrompt + 20);
        CHECK(setup.backend->truncate(0, kPrompt));
        CHECK(setup.decode(0, 1, kPrompt, kPrompt + 1) == expected);
        CHECK(setup.backend->truncate(0, kPrompt));
        CHECK(setup.decode(0, 1, kPrompt, kPrompt + 1) == expected);
    });
}

TEST(a_copied_prefix_is_exact) {
    for_both_layouts([](CacheLayout layout) {
        const auto expected = fresh(layout, 1, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        const SavedCells fork = setup.backend->fork(0);
        setup.decode(0, 2, kPrompt, kPrompt + 20);
        setup.copy(0, 1, kPrompt, fork);
        CHECK(agrees(layout, setup.decode(1, 1, kPrompt, kPrompt + 1), expected));
        // The source goes on undisturbed.
        setup.backend->copy_prefix(0, 2, kPrompt + 20);
        const auto source = setup.decode(0, 2, kPrompt + 20, kPrompt + 21);
        CHECK(agrees(layout, setup.decode(2, 2, kPrompt + 20, kPrompt + 21), source));
    });
}

// The source of a copy changes before the decode that carries the copy out.
TEST(a_copy_survives_what_happens_to_its_source) {
    for_both_layouts([](CacheLayout layout) {
        const auto first = fresh(layout, 1, kPrompt, kPrompt + 1);
        const auto second = fresh(layout, 2, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        setup.decode(3, 2, 0, kPrompt);
        setup.backend->copy_prefix(0, 1, kPrompt);  // 0 to 1
        setup.backend->copy_prefix(1, 2, kPrompt);  // and on to 2
        CHECK(setup.backend->truncate(0, 0));
        setup.backend->copy_prefix(3, 0, kPrompt);  // 0 is the target of another
        CHECK(setup.backend->truncate(3, 0));       // whose source is dropped and refilled
        setup.decode(3, 5, 0, kPrompt);
        CHECK(agrees(layout, setup.decode(1, 1, kPrompt, kPrompt + 1), first));
        CHECK(agrees(layout, setup.decode(2, 1, kPrompt, kPrompt + 1), first));
        CHECK(agrees(layout, setup.decode(0, 2, kPrompt, kPrompt + 1), second));
    });
}

TEST(a_saved_slot_is_restored_exactly) {
    for_both_layouts([](CacheLayout layout) {
        const auto expected = fresh(layout, 1, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        const SavedCells saved = setup.backend->save(0);
        CHECK_EQ(saved.size(), setup.backend->saved_size(0));
        CHECK_EQ(saved.length(), kPrompt);
        CHECK(setup.backend->truncate(0, 0));
        setup.decode(0, 3, 0, kPrompt + 30);
        setup.decode(2, 4, 0, kPrompt);
        CHECK(setup.backend->truncate(2, 0));
        // Into another slot, and twice.
        for (const SlotId slot : {2, 1}) {
            CHECK(setup.backend->restore(slot, saved));
            CHECK(agrees(layout, setup.decode(slot, 1, kPrompt, kPrompt + 1), expected));
        }
    });
}

// A common beginning is saved once, and each sequence is restored as it was: from its pages, and
// from one row of bytes, which is how it comes out of a file.
void share_what_is_common(CacheLayout layout, FlashAttention flash_attention) {
    constexpr std::int32_t kCommon = 2 * kPagePositions + 10;
    Setup setup(layout, 1, flash_attention);
    if (!setup.backend->shape().partial_truncate) return;
    const auto prefill = [&setup](SlotId slot, std::int32_t seed) {
        setup.decode(slot, seed, 0, kCommon / 2);
        setup.decode(slot, seed, kCommon / 2, kCommon);
    };
    prefill(0, 1);
    setup.backend->copy_prefix(0, 1, kCommon);
    setup.decode(0, 2, kCommon, kCommon + 90);
    setup.decode(1, 3, kCommon, kCommon + 40);
    const SavedCells first = setup.backend->save(0);
    const SavedCells second = setup.backend->save_beside(1, first, kCommon);
    CHECK_EQ(first.size(), setup.backend->saved_size(0));
    CHECK_EQ(second.size(), setup.backend->saved_size(1));
    for (std::size_t page = 0; page < second.page_count(); ++page)
        CHECK_EQ(second.is_shared(page), page == 1 || page == 2);
    const auto one = setup.decode(0, 2, kCommon + 90, kCommon + 91);
    const auto other = setup.decode(1, 3, kCommon + 40, kCommon + 41);
    for (const SlotId slot : {0, 1})
        CHECK(setup.backend->truncate(slot, 0));
    prefill(3, 5);
    for (const bool flat : {false, true}) {
        const auto given = [flat](const SavedCells& saved) {
            if (!flat) return saved;
            SavedCells whole(saved.size(), saved.length());
            std::ranges::copy(bytes_of(saved), whole.page(0).begin());
            return whole;
        };
        CHECK(setup.backend->restore(1, given(first)));
        CHECK(agrees(layout, setup.decode(1, 2, kCommon + 90, kCommon + 91), one));
        CHECK(setup.backend->restore(2, given(second)));
        CHECK(agrees(layout, setup.decode(2, 3, kCommon + 40, kCommon + 41), other));
    }
    // Who says so of other tokens is not believed.
    const SavedCells third = setup.backend->save_beside(3, first, kCommon);
    for (std::size_t page = 0; page < third.page_count(); ++page)
        CHECK(!third.is_shared(page));
    CHECK(bytes_of(third) == bytes_of(setup.backend->save(3)));
}

// Without flash attention the values stand column by column.
TEST(saved_slots_share_what_they_have_in_common) {
    for_both_layouts([](CacheLayout layout) {
        share_what_is_common(layout, FlashAttention::kAuto);
        share_what_is_common(layout, FlashAttention::kOff);
    });
}

// Restored, cut back to what another prompt shares, and moved on before anything is decoded.
TEST(a_restored_slot_can_be_cut_and_copied_at_once) {
    for_both_layouts([](CacheLayout layout) {
        const auto expected = fresh(layout, 1, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        setup.decode(0, 2, kPrompt, kPrompt + 20);
        const SavedCells longer = setup.backend->save(0);
        setup.decode(1, 5, 0, kPrompt);
        setup.backend->copy_prefix(1, 2, kPrompt);
        CHECK(setup.backend->truncate(1, 0));
        // Source and target of a copy are saved and restored at once, too.
        const SavedCells copied = setup.backend->save(2);
        if (!setup.backend->shape().partial_truncate) return;
        CHECK(!copied.empty());
        CHECK(setup.backend->restore(1, longer));
        CHECK(setup.backend->truncate(1, kPrompt));
        setup.backend->copy_prefix(1, 3, kPrompt);
        CHECK(setup.backend->truncate(1, 0));
        CHECK(setup.backend->restore(1, copied));
        CHECK(agrees(layout, setup.decode(3, 1, kPrompt, kPrompt + 1), expected));
        const auto other = fresh(layout, 5, kPrompt, kPrompt + 1);
        CHECK(agrees(layout, setup.decode(1, 5, kPrompt, kPrompt + 1), other));
        CHECK(agrees(layout, setup.decode(2, 5, kPrompt, kPrompt + 1), other));
    });
}

TEST(what_cannot_be_restored_leaves_an_empty_slot) {
    for_both_layouts([](CacheLayout layout) {
        Setup setup(layout);
        CHECK(setup.backend->save(0).empty());
        CHECK(setup.backend->save(9).empty());
        CHECK_EQ(setup.backend->saved_size(-1), std::size_t{0});
        setup.decode(0, 1, 0, kPrompt);
        const SavedCells saved = setup.backend->save(0);
        const std::vector<std::byte> bytes = bytes_of(saved);
        const auto part = [&bytes](std::size_t size, std::int32_t length) {
            SavedCells cut(size, length);
            std::ranges::copy(std::span(bytes).first(size), cut.page(0).begin());
            return cut;
        };
        for (const std::size_t size :
             {std::size_t{1}, std::size_t{7}, saved.size() / 2, saved.size() - 1}) {
            CHECK(!setup.backend->restore(1, part(size, kPrompt)));
            CHECK(!setup.backend->last_error().empty());
        }
        CHECK(!setup.backend->restore(1, part(saved.size(), kPrompt - 1)));
        CHECK(!setup.backend->restore(1, SavedCells()));
        CHECK(!setup.backend->restore(9, saved));
        setup.decode(1, 1, 0, kPrompt);
        CHECK(agrees(layout, setup.decode(1, 1, kPrompt, kPrompt + 1),
                     fresh(layout, 1, kPrompt, kPrompt + 1)));
    });
}

TEST(a_cleared_slot_is_clean) {
    for_both_layouts([](CacheLayout layout) {
        Setup setup(layout);
        setup.decode(0, 3, 0, kPrompt + 30);
        CHECK(setup.backend->truncate(0, 0));
        setup.decode(0, 1, 0, kPrompt);
        CHECK(setup.decode(0, 1, kPrompt, kPrompt + 1) == fresh(layout, 1, kPrompt, kPrompt + 1));
    });
}

TEST(slots_do_not_see_each_other) {
    for_both_layouts([](CacheLayout layout) {
        Setup alone(layout);
        alone.decode(1, 1, 0, kPrompt);
        Setup together(layout);
        together.decode(0, 2, 0, kPrompt);
        together.decode(1, 1, 0, kPrompt);
        together.decode(2, 3, 0, kPrompt);
        const auto expected = alone.decode(1, 1, kPrompt, kPrompt + 1);
        CHECK(agrees(layout, together.decode(1, 1, kPrompt, kPrompt + 1), expected));
    });
}

TEST(misuse_is_refused_and_harmless) {
    for_both_layouts([](CacheLayout layout) {
        const auto expected = fresh(layout, 1, kPrompt, kPrompt + 1);
        Setup setup(layout);
        setup.decode(0, 1, 0, kPrompt);
        const CacheShape shape = setup.backend->shape();
        setup.refuse({});
        setup.refuse(std::vector<BatchRow>(static_cast<std::size_t>(shape.max_rows) + 1,
                                           {300, 0, 1, false}));
        setup.refuse({{300, 0, shape.slot_count, true}});
        setup.refuse({{300, 0, -1, true}});
        setup.refuse({{-1, 0, 1, true}});
        setup.refuse({{model->vocabulary().size(), 0, 1, true}});
        setup.refuse({{300, kPrompt + 1, 0, true}});            // a gap
        setup.refuse({{300, kPrompt - 1, 0, true}});            // over what is there
        setup.refuse({{300, 0, 1, false}, {300, 2, 1, true}});  // a gap in the batch
        setup.refuse({{300, 0, 2, true}, {300, 0, 1, true}});   // slots descending
        setup.refuse({{300, 0, 1, true}, {300, kPrompt, 0, true}, {300, 1, 1, true}});
        std::vector<BatchRow> rows;
        for (std::int32_t at = 0; at < 100; ++at)
            rows.push_back({300, at, 1, true});
        setup.refuse(rows);  // too many logits
        CHECK(setup.backend->logits(0).empty());
        setup.backend->copy_prefix(0, 0, 5);
        setup.backend->copy_prefix(0, 9, 5);
        setup.backend->copy_prefix(-1, 1, 5);
        CHECK(!setup.backend->truncate(99, 0));
        CHECK(setup.decode(0, 1, kPrompt, kPrompt + 1) == expected);
        CHECK(setup.backend->logits(1).empty());
        CHECK(setup.backend->last_error().empty());
    });
}

TEST(a_full_slot_is_refused) {
    for_both_layouts([](CacheLayout layout) {
        Setup setup(layout);
        const std::int32_t cells = setup.backend->shape().cells_per_sequence;
        for (std::int32_t at = 0; at < cells; at += 128)
            setup.decode(0, 1, at, at + 128);
        setup.refuse({{300, cells, 0, true}});
    });
}

TEST(a_full_pool_has_no_cells) {
    Setup setup(CacheLayout::kUnified);
    BackendOptions options = setup.options;
    options.cells_total = 512;
    setup.backend = std::move(LlamaBackend::create(model, options).value());
    for (std::int32_t at = 0; at < 384; at += 128)
        setup.decode(0, 1, at, at + 128);
    CHECK(setup.backend->copy_prefix(0, 1, 384));  // takes no cells
    setup.decode(1, 2, 384, 500);
    std::vector<BatchRow> rows;
    for (std::int32_t at = 0; at < 20; ++at)
        rows.push_back({word(1, at), at, 2, at == 19});
    CHECK(setup.backend->decode(rows) == DecodeStatus::kNoCells);
    CHECK(setup.backend->truncate(1, 0));
    CHECK(setup.backend->decode(rows) == DecodeStatus::kOk);
}

TEST(logits_follow_their_rows) {
    for_both_layouts([](CacheLayout layout) {
        Setup setup(layout);
        // Slot 0 has two rows, slot 1 has one: streams split them into passes.
        std::vector<BatchRow> rows = {{300, 0, 0, true}, {301, 1, 0, true}, {302, 0, 1, true}};
        CHECK(setup.backend->decode(rows) == DecodeStatus::kOk);
        std::vector<std::vector<float>> together;
        for (std::size_t i = 0; i < 3; ++i) {
            const auto logits = setup.backend->logits(i);
            together.emplace_back(logits.begin(), logits.end());
        }
        Setup apart(layout);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(apart.backend->decode(std::span(rows).subspan(i, 1)) == DecodeStatus::kOk);
            const auto logits = apart.backend->logits(0);
            CHECK(agrees(CacheLayout::kUnified, together[i], {logits.begin(), logits.end()}));
        }
    });
}

TEST(an_abort_ends_decoding) {
    Setup setup(CacheLayout::kStreams);
    setup.decode(0, 1, 0, kPrompt);
    std::thread closer([&] { setup.backend->set_abort(); });
    DecodeStatus status = DecodeStatus::kOk;
    for (std::int32_t at = kPrompt; at < 500 && status == DecodeStatus::kOk; ++at) {
        const BatchRow row{word(1, at), at, 0, true};
        status = setup.backend->decode({&row, 1});
    }
    closer.join();
    const BatchRow row{300, 0, 1, true};
    CHECK(setup.backend->decode({&row, 1}) == DecodeStatus::kFailed);
}

TEST(a_backend_closes_while_its_threads_idle) {
    Setup setup(CacheLayout::kStreams, 2);
    setup.decode(0, 1, 0, 2);
}

// What was freed is taken by somebody else, as in a process with more to do.
void reuse_freed_memory() {
    std::vector<std::vector<char>> taken;
    for (std::size_t bytes = 16; bytes <= 4096; bytes += 16)
        for (std::int32_t count = 0; count < 8; ++count)
            taken.emplace_back(bytes, '\x55');
}

TEST(the_number_of_threads_changes_between_graphs) {
    Setup steady(CacheLayout::kStreams);
    Setup changing(CacheLayout::kStreams, 2);
    for (std::int32_t at = 0; at < 20; ++at) {
        CHECK(changing.backend->threads()->use(1 + at % 2));
        CHECK(changing.backend->threads()->use(2 - at % 2));
        CHECK_EQ(changing.backend->compute_threads(), 2 - at % 2);
        reuse_freed_memory();
        CHECK(changing.decode(0, 1, at, at + 1) == steady.decode(0, 1, at, at + 1));
    }
}

TEST(two_contexts_compute_on_the_same_threads) {
    Setup steady(CacheLayout::kStreams);
    Setup one(CacheLayout::kStreams, 2), other(CacheLayout::kStreams, 2);
    auto beside = LlamaBackend::create(model, other.options, one.backend->threads());
    other.backend = std::move(beside.value());
    for (std::int32_t at = 0; at < 10; ++at) {
        const auto expected = steady.decode(0, 1, at, at + 1);
        CHECK(one.backend->threads()->use(1 + at % 2));
        CHECK(one.decode(0, 1, at, at + 1) == expected);
        reuse_freed_memory();
        if (at % 3 == 0) CHECK(one.backend->threads()->use(2 - at % 2));
        CHECK(other.decode(0, 1, at, at + 1) == expected);
        CHECK_EQ(other.backend->compute_threads(), one.backend->compute_threads());
    }
    one.backend.reset();
    CHECK(other.decode(0, 1, 10, 11) == steady.decode(0, 1, 10, 11));
}

TEST(bad_options_are_named) {
    BackendOptions options;
    options.slot_count = 0;
    CHECK(LlamaBackend::create(model, options).error().code == ErrorCode::kInvalidArgument);
    options.slot_count = 257;
    CHECK(LlamaBackend::create(model, options).error().code == ErrorCode::kInvalidArgument);
    options.slot_count = 1;
    options.values = KvType::kQ8_0;
    options.flash_attention = FlashAttention::kOff;
    CHECK(LlamaBackend::create(model, options).error().code == ErrorCode::kInvalidArgument);
    options.values = KvType::kF16;
    options.cells_per_sequence = 1 << 23;
    options.slot_count = 256;
    const Error error = LlamaBackend::create(model, options).error();
    CHECK(error.message.find("2^31") != std::string::npos);
}

TEST(memory_is_measured_without_weights) {
    ModelOptions model_options;
    model_options.path = model_path;
    model_options.gpu_layers = test_gpu_layers();
    model_options.measures = true;
    auto measuring = Model::load(model_options);
    BackendOptions options;
    options.cells_per_sequence = 512;
    options.slot_count = 3;
    auto needs = LlamaBackend::measure(*measuring.value(), options);
    auto backend = LlamaBackend::create(model, options);
    MemoryParts sum = needs.value().host;
    for (const auto& device : needs.value().devices) {
        sum.cache += device.parts.cache;
        sum.weights += device.parts.weights;
        // All layers: the cache is where they are.
        CHECK(test_gpu_layers() >= 0 || needs.value().host.cache == 0);
    }
    CHECK(sum.cache == backend.value()->cache_bytes());
    CHECK(sum.weights > model->info().size_bytes / 2);
}

TEST(bad_files_are_named) {
    ModelOptions options;
    options.path = "no/such/model.gguf";
    CHECK(Model::load(options).error().code == ErrorCode::kInvalidArgument);
    options.path = program;
    CHECK(Model::load(options).error().code == ErrorCode::kModelLoadFailed);
    CHECK(Model::load(options).error().message.find("magic") != std::string::npos);
}

TEST(a_load_can_be_cancelled) {
    ModelOptions options;
    options.path = model_path;
    options.on_progress = [](float fraction) { return fraction < 0.3f; };
    CHECK(Model::load(options).error().code == ErrorCode::kModelLoadFailed);
}

TEST(what_was_interrupted_can_be_computed_again) {
    for_both_layouts([](CacheLayout layout) {
        Setup setup(layout);
        setup.decode(0, 5, 0, kPrompt);
        if (!setup.backend->shape().partial_truncate) return;
        std::vector<BatchRow> rows;  // two passes over the weights
        for (std::int32_t at = 0; at < 100; ++at)
            rows.push_back({word(5, kPrompt + at), kPrompt + at, 0, false});
        // The first pass is computed, and the second one is not.
        int asked = 0;
        int operations = 0;
        setup.backend->interrupt_when([&] { return ++asked < 0; });
        CHECK(setup.backend->decode(rows) == DecodeStatus::kOk);
        operations = asked;
        CHECK(setup.backend->truncate(0, kPrompt));
        asked = 0;
        setup.backend->interrupt_when([&] { return ++asked > operations * 3 / 4; });
        CHECK(setup.backend->decode(rows) == DecodeStatus::kInterrupted);
        setup.backend->interrupt_when({});
        CHECK(distance(setup.decode(0, 5, kPrompt, kPrompt + 30),
                       fresh(layout, 5, kPrompt, kPrompt + 30)) == 0.0f);
    });
}

#ifdef __GLIBC__
TEST(without_threads_there_is_no_backend_and_a_pool_keeps_its_size) {
    auto threads = ComputeThreads::start({.most = 2});
    CHECK(threads.ok());
    const NoThreads fault;
    CHECK(!threads.value()->use(4));
    CHECK_EQ(threads.value()->count(), 2);
    BackendOptions options;
    options.slot_count = 1;
    options.cells_per_sequence = 256;
    options.threads = 2;
    const auto outcome = LlamaBackend::create(model, options);
    CHECK(!outcome.ok());
    CHECK(outcome.error().code == ErrorCode::kNoThreads);
}
#endif

MODEL_TEST_MAIN()
