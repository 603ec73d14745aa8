// What is saved in pages: of caches of any types whose cells lie anywhere, and what is no such
// thing; and how buffers are cleared.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "real_model.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

std::unique_ptr<LlamaBackend> backend_of(CacheLayout layout, KvType keys, KvType values,
                                         FlashAttention flash_attention) {
    BackendOptions options;
    options.layout = layout;
    options.keys = keys;
    options.values = values;
    options.flash_attention = flash_attention;
    options.slot_count = 4;
    options.cells_per_sequence = 512;
    options.cells_total = 1024;
    options.max_rows = 128;
    options.micro_batch_rows = 64;
    auto outcome = LlamaBackend::create(model, options);
    if (!outcome.ok()) check::fail(__FILE__, __LINE__, outcome.error().message);
    return std::move(outcome.value());
}

// Decodes words [from, to) of a seed for a slot. Logits of the last one.
std::vector<float> decode(LlamaBackend& backend, SlotId slot, std::int32_t from, std::int32_t to) {
    std::vector<BatchRow> rows;
    for (std::int32_t at = from; at < to; ++at)
        rows.push_back({word(slot, at), at, slot, at + 1 == to});
    if (backend.decode(rows) != DecodeStatus::kOk)
        check::fail(__FILE__, __LINE__, backend.last_error());
    const auto logits = backend.logits(rows.size() - 1);
    return {logits.begin(), logits.end()};
}

// What belongs to positions.
std::vector<std::byte> rows_of(const SavedCells& saved) {
    std::vector<std::byte> bytes;
    for (std::size_t page = 1; page < saved.page_count(); ++page)
        bytes.insert(bytes.end(), saved.page(page).begin(), saved.page(page).end());
    return bytes;
}

SavedCells in_one_page(const SavedCells& saved) {
    SavedCells whole(saved.size(), saved.length());
    std::byte* to = whole.page(0).data();
    for (std::size_t page = 0; page < saved.page_count(); ++page) {
        const std::span<const std::byte> bytes = saved.page(page);
        to = std::ranges::copy(bytes, to).out;
    }
    return whole;
}

}  // namespace

// Three slots grow by turns, so that in one pool their cells are mixed; one is cut back and grows
// into the gaps of another.
TEST(caches_of_all_types_come_back_from_wherever_they_lie) {
    struct Kind {
        KvType keys, values;
        FlashAttention flash_attention;
    };
    for (const CacheLayout layout : {CacheLayout::kStreams, CacheLayout::kUnified}) {
        for (const Kind& kind : {Kind{KvType::kF16, KvType::kF16, FlashAttention::kOff},
                                 Kind{KvType::kF32, KvType::kF16, FlashAttention::kOn},
                                 Kind{KvType::kQ8_0, KvType::kF16, FlashAttention::kOff},
                                 Kind{KvType::kQ8_0, KvType::kQ4_0, FlashAttention::kOn}}) {
            const auto backend = backend_of(layout, kind.keys, kind.values, kind.flash_attention);
            if (!backend->shape().partial_truncate) return;
            for (std::int32_t at = 0; at < 130; at += 13)
                for (const SlotId slot : {0, 1, 2})
                    decode(*backend, slot, at, at + 13);
            CHECK(backend->truncate(1, 20));
            decode(*backend, 0, 130, 190);
            decode(*backend, 1, 20, 100);
            const std::vector<SavedCells> saved = {backend->save(0), backend->save(1)};
            const std::int32_t lengths[] = {190, 100};
            std::vector<std::vector<float>> expected;
            for (const SlotId slot : {0, 1}) {
                CHECK_EQ(saved[static_cast<std::size_t>(slot)].length(), lengths[slot]);
                CHECK_EQ(saved[static_cast<std::size_t>(slot)].size(), backend->saved_size(slot));
            }
            for (const SlotId slot : {0, 1})
                expected.push_back(decode(*backend, slot, lengths[slot], lengths[slot] + 1));
            CHECK(backend->truncate(2, 0));
            for (const bool one_page : {false, true}) {
                for (const SlotId slot : {0, 1}) {
                    const SavedCells& was = saved[static_cast<std::size_t>(slot)];
                    CHECK(backend->restore(slot, one_page ? in_one_page(was) : was));
                    const SavedCells again = backend->save(slot);
                    CHECK(rows_of(again) == rows_of(was));
                    const auto logits = decode(*backend, slot, lengths[slot], lengths[slot] + 1);
                    float largest = 0;
                    for (std::size_t i = 0; i < logits.size(); ++i)
                        largest = std::max(
                            largest,
                            std::abs(logits[i] - expected[static_cast<std::size_t>(slot)][i]));
                    CHECK(layout == CacheLayout::kStreams ? largest == 0 : largest < 0.1f);
                }
            }
        }
    }
}

// Sizes that add up only because sums of 64 bits begin again at 0: rows of the first run would be
// read from far behind the end.
TEST(sizes_beyond_all_bounds_are_refused) {
    constexpr std::uint32_t kMost = 0xFFFF'FFFF;
    constexpr std::uint64_t kClaimed = 512;
    struct Pair {
        std::uint32_t first, second;
    };
    const auto backend =
        backend_of(CacheLayout::kStreams, KvType::kF16, KvType::kF16, FlashAttention::kAuto);
    if (!backend->shape().partial_truncate) return;
    decode(*backend, 0, 0, 64);
    const SavedCells saved = in_one_page(backend->save(0));
    const std::byte* from = saved.page(0).data();
    Pair sizes, run;  // runs and bytes of numbers; bytes and strips
    std::memcpy(&sizes, from, sizeof(sizes));
    std::memcpy(&run, from + sizeof(sizes), sizeof(run));
    run.second = 100'000;
    const std::uint64_t rest =
        (std::uint64_t{1} << 33) - 1 + kClaimed - std::uint64_t{run.first} * run.second;
    const Pair runs[] = {run,
                         {kMost, kMost},
                         {2, static_cast<std::uint32_t>(rest / 2 - 1)},
                         {1, static_cast<std::uint32_t>(2 + rest % 2)}};
    std::uint64_t sum = 0;
    for (const Pair& one : runs)
        sum += std::uint64_t{one.first} * one.second;
    CHECK_EQ(sum, kClaimed);
    const Pair claimed{static_cast<std::uint32_t>(std::size(runs)), sizes.second};
    SavedCells wrong(sizeof(claimed) + sizeof(runs) + sizes.second + kClaimed * 64, 64);
    std::byte* to = wrong.page(0).data();
    std::memcpy(to, &claimed, sizeof(claimed));
    std::memcpy(to + sizeof(claimed), runs, sizeof(runs));
    std::memcpy(to + sizeof(claimed) + sizeof(runs),
                from + sizeof(sizes) + sizes.first * sizeof(Pair), sizes.second);
    CHECK(!backend->restore(1, wrong));
    decode(*backend, 1, 0, 64);
}

// At odd addresses, of odd sizes.
TEST(a_large_buffer_is_cleared_to_its_ends) {
    for (const std::size_t size : {1'000u, (1u << 20) - 1, (1u << 20) + 4'097, 9'000'001u}) {
        const ggml_backend_buffer_ptr buffer(
            ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size));
        auto* bytes = static_cast<unsigned char*>(ggml_backend_buffer_get_base(buffer.get()));
        const auto all_are = [&](unsigned char value) {
            return std::all_of(bytes, bytes + size, [&](unsigned char b) { return b == value; });
        };
        std::memset(bytes, 1, size);
        ggml_backend_buffer_clear(buffer.get(), 0);
        CHECK(all_are(0));
        ggml_backend_buffer_clear(buffer.get(), 7);
        CHECK(all_are(7));
    }
}

MODEL_TEST_MAIN()
