#include "core/logit_view.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace fermata {

namespace {

constexpr std::size_t kBlock = 64;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

std::uint64_t allowed_bits(TokenMask mask, std::size_t block) {
    if (mask.empty()) return ~std::uint64_t{0};
    const auto word = [&](std::size_t i) { return i < mask.size() ? mask[i] : 0u; };
    return word(block * 2) | std::uint64_t{word(block * 2 + 1)} << kMaskWordBits;
}

template <class Visit>
void for_each_bit(std::uint64_t bits, std::size_t count, Visit visit) {
    for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
        if (bit >= count) return;
        visit(bit);
    }
}

bool any_above(std::span<const float> block, float floor) {
    int any = 0;
    for (const float logit : block)
        any |= static_cast<int>(logit > floor);
    return any != 0;
}

// e^x for x <= 0, to 2e-7 of it; 1 above, 1e-38 below -87 and for what is not a number. std::exp
// would be a call for each element.
float exp_of_negative(float x) {
    x = x > -87.0f ? x : -87.0f;
    x = x < 0.0f ? x : 0.0f;
    const int power = static_cast<int>(x * 1.44269504f - 0.5f);
    const auto n = static_cast<float>(power);
    const float rest = x - n * 0.693359375f + n * 2.12194440e-4f;
    float value = 1.9875691500e-4f;
    value = value * rest + 1.3981999507e-3f;
    value = value * rest + 8.3334519073e-3f;
    value = value * rest + 4.1665795894e-2f;
    value = value * rest + 1.6666665459e-1f;
    value = value * rest + 5.0000001201e-1f;
    value = value * rest * rest + rest + 1.0f;
    return value * std::bit_cast<float>((power + 127) << 23);
}

// The heap's front is the one to be replaced first.
bool better(const TokenLogit& a, const TokenLogit& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
}

}  // namespace

template <class Visit>
void LogitView::for_each_block(Visit visit) const {
    std::array<float, kBlock> copy;
    auto change = changes_.begin();
    for (std::size_t begin = 0; begin < logits_.size(); begin += kBlock) {
        auto block = logits_.subspan(begin, std::min(kBlock, logits_.size() - begin));
        const std::size_t count = block.size();
        const std::uint64_t allowed = allowed_bits(mask_, begin / kBlock);
        const auto changed = change;
        while (change != changes_.end() && static_cast<std::size_t>(change->first) < begin + count)
            ++change;
        if (allowed == 0) continue;
        if (~allowed != 0 || changed != change) {
            if (std::popcount(allowed) < 16) {
                copy.fill(kLowest);
                for_each_bit(allowed, count, [&](std::size_t i) { copy[i] = block[i]; });
            } else {
                std::ranges::copy(block, copy.begin());
                for_each_bit(~allowed, count, [&](std::size_t i) { copy[i] = kLowest; });
            }
            for (auto next = changed; next != change; ++next) {
                const std::size_t i = static_cast<std::size_t>(next->first) - begin;
                if ((allowed >> i & 1) != 0) copy[i] = next->second;
            }
            block = std::span<const float>(copy).first(count);
        }
        visit(static_cast<Token>(begin), block);
    }
}

float LogitView::highest() const {
    float highest = kLowest;
    for_each_block([&](Token, std::span<const float> block) {
        if (!any_above(block, highest)) return;
        for (const float logit : block)
            highest = logit > highest ? logit : highest;
    });
    return highest;
}

double LogitView::sum_of_exp(float highest) const {
    std::array<double, 4> sums = {};
    for_each_block([&](Token, std::span<const float> block) {
        std::array<float, kBlock> terms = {};
        for (std::size_t i = 0; i < block.size(); ++i)
            terms[i] = exp_of_negative(block[i] - highest);
        for (std::size_t i = 0; i < kBlock; i += sums.size()) {
            for (std::size_t j = 0; j < sums.size(); ++j)
                sums[j] += static_cast<double>(terms[i + j]);
        }
    });
    return sums[0] + sums[1] + sums[2] + sums[3];
}

void LogitView::find_top(std::size_t count, std::vector<TokenLogit>& found) const {
    found.clear();
    if (count == 0) return;
    float floor = kLowest;
    for_each_block([&](Token begin, std::span<const float> block) {
        if (!any_above(block, floor)) return;
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (!(block[i] > floor)) continue;
            if (found.size() == count) {
                std::ranges::pop_heap(found, better);
                found.pop_back();
            }
            found.emplace_back(begin + static_cast<Token>(i), block[i]);
            std::ranges::push_heap(found, better);
            if (found.size() == count) floor = found.front().second;
        }
    });
    std::ranges::sort_heap(found, better);
}

void LogitView::find_from(float lowest, std::vector<TokenLogit>& found) const {
    found.clear();
    // What equals `lowest` is found, unless that is minus infinity.
    const float floor = std::nextafter(lowest, kLowest);
    for_each_block([&](Token begin, std::span<const float> block) {
        if (!any_above(block, floor)) return;
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (block[i] > floor) found.emplace_back(begin + static_cast<Token>(i), block[i]);
        }
    });
}

}  // namespace fermata
