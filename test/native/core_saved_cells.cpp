// Pages of saved cells, and who keeps them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "check.h"
#include "core/checksum.h"
#include "core/saved_cells.h"
#include "core/system_pages.h"

using namespace fermata;

namespace {

std::size_t allocated = 0;  // bytes, now
constexpr std::size_t kNote = 16;

}  // namespace

void* operator new(std::size_t size) {
    auto* at = static_cast<std::byte*>(std::malloc(kNote + size));
    if (at == nullptr) throw std::bad_alloc();
    std::memcpy(at, &size, sizeof(size));
    allocated += size;
    return at + kNote;
}
void operator delete(void* at) noexcept {
    if (at == nullptr) return;
    std::byte* start = static_cast<std::byte*>(at) - kNote;
    std::size_t size = 0;
    std::memcpy(&size, start, sizeof(size));
    allocated -= size;
    std::free(start);
}
void operator delete(void* at, std::size_t) noexcept {
    operator delete(at);
}

namespace {

constexpr std::size_t kPosition = 24'000;

std::size_t bytes_of(std::int32_t positions) {
    return kPosition * static_cast<std::size_t>(positions);
}

PagedSize size_of(std::int32_t length) {
    return {.head = 100, .position = kPosition, .length = length};
}

void fill(SavedCells& cells, std::size_t page, int value) {
    std::ranges::fill(cells.page(page), static_cast<std::byte>(value));
}

bool is_filled(const SavedCells& cells, std::size_t page, int value) {
    return std::ranges::all_of(cells.page(page), [value](std::byte byte) {
        return byte == static_cast<std::byte>(value);
    });
}

}  // namespace

TEST(whole_pages_of_a_common_beginning_are_shared) {
    const SavedCells first(size_of(200), {}, 0);
    CHECK_EQ(first.page_count(), 5u);
    CHECK_EQ(first.page(0).size(), 100u);
    CHECK_EQ(first.page(4).size(), bytes_of(200 - 192));
    for (const std::int32_t common : {127, 128, 191}) {
        const SavedCells second(size_of(300), first, common);
        CHECK_EQ(second.size(), 100 + bytes_of(300));
        for (std::size_t page = 0; page < second.page_count(); ++page)
            CHECK_EQ(second.is_shared(page), page >= 1 && page <= (common == 127 ? 1u : 2u));
        CHECK(second.page(1).data() == first.page(1).data());
        CHECK(second.page(3).data() != first.page(3).data());
    }
    // Nothing of what has rows of another size, or is in one page.
    const PagedSize wider{.head = 100, .position = 2 * kPosition, .length = 200};
    CHECK(!SavedCells(wider, first, 200).is_shared(1));
    CHECK(!SavedCells(size_of(200), SavedCells(first.size(), 200), 200).is_shared(1));
}

TEST(what_is_kept_is_counted_once) {
    const SavedCells first(size_of(200), {}, 0);
    const SavedCells second(size_of(300), first, 200);
    CHECK_EQ(first.kept_of(200), 0u);
    CHECK_EQ(first.keep(), first.size());
    CHECK_EQ(first.kept_of(191), bytes_of(128));
    CHECK_EQ(first.kept_alone(), first.size());
    CHECK_EQ(second.not_kept(), second.size() - bytes_of(192));
    CHECK_EQ(second.keep(), second.size() - bytes_of(192));
    CHECK_EQ(first.kept_alone(), first.size() - bytes_of(192));
    CHECK_EQ(first.give_up(), first.size() - bytes_of(192));
    CHECK_EQ(second.kept_alone(), second.size());
    CHECK_EQ(second.give_up(), second.size());
    CHECK_EQ(second.not_kept(), second.size());
}

TEST(what_differs_is_no_longer_shared) {
    SavedCells first(size_of(200), {}, 0);
    for (std::size_t page = 0; page < first.page_count(); ++page)
        fill(first, page, static_cast<int>(page));
    SavedCells second(size_of(200), first, 192);
    second.make_own(2, second.page(2).size());
    CHECK(!second.is_shared(2) && second.is_shared(3));
    CHECK(is_filled(second, 2, 2));
    fill(second, 2, 9);
    CHECK(is_filled(first, 2, 2));
}

// The memory of one save serves several sequences in part, and parts of it are given back.
TEST(a_page_outlives_the_sequence_that_it_came_with) {
    std::optional<SavedCells> first(std::in_place, size_of(200), SavedCells(), 0);
    for (std::size_t page = 0; page < first->page_count(); ++page)
        fill(*first, page, 7);
    std::optional<SavedCells> second(std::in_place, size_of(130), *first, 130);
    const SavedCells third(size_of(100), *second, 100);
    first.reset();
    CHECK(is_filled(*second, 1, 7) && is_filled(*second, 2, 7));
    second.reset();
    CHECK(is_filled(third, 1, 7));
}

// Small saves, in which a page is all that somebody still has of each.
TEST(what_nobody_keeps_leaves_the_heap) {
    const PagedSize size{.head = 100, .position = 1000, .length = 300};
    const std::size_t before = allocated;
    std::vector<SavedCells> kept;
    for (int i = 0; i < 10; ++i) {
        const SavedCells first(size, {}, 0);
        kept.emplace_back(PagedSize{.head = 100, .position = 1000, .length = 64}, first, 64);
    }
    CHECK(allocated - before < 10 * 64 * 1000 + 20'000);
    kept = std::vector<SavedCells>();
    CHECK_EQ(allocated, before);
}

// A part of a page of the system is never given back: the rest of it is another's.
TEST(only_whole_pages_of_the_system_are_given_back) {
    alignas(65'536) static std::array<std::byte, 4 * 65'536> memory;
    for (const std::size_t page : {4'096u, 16'384u, 65'536u}) {
        for (const std::size_t from : {0u, 1u, 4'096u, 16'384u, 65'000u}) {
            for (const std::size_t size : {0u, 1u, 4'095u, 20'480u, 70'000u, 131'072u}) {
                const std::span<std::byte> part = std::span(memory).subspan(from, size);
                const std::span<std::byte> whole = whole_pages(part, page);
                CHECK_EQ(whole.size() % page, 0u);
                const bool fits = (from + page - 1) / page * page + page <= from + size;
                CHECK_EQ(!whole.empty(), fits);
                if (!fits) continue;
                const auto begin = static_cast<std::size_t>(whole.data() - memory.data());
                CHECK(begin % page == 0 && begin >= from && begin < from + page);
                const std::size_t end = begin + whole.size();
                CHECK(end <= from + size && from + size < end + page);
            }
        }
    }
}

TEST(a_checksum_does_not_depend_on_parts) {
    std::vector<std::byte> bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 37 % 251);
    const std::uint64_t whole = checksum_of(bytes);
    for (const std::size_t part : {1u, 7u, 31u, 32u, 33u, 500u, 1000u}) {
        Checksum sum;
        for (std::size_t at = 0; at < bytes.size(); at += part)
            sum.add(std::span(bytes).subspan(at, std::min(part, bytes.size() - at)));
        CHECK_EQ(sum.value(), whole);
    }
    bytes[999] ^= std::byte{1};
    CHECK(checksum_of(bytes) != whole);
}

TEST_MAIN()
