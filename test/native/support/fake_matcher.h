// A grammar that is a list of texts, over the fake backend's vocabulary.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/matcher.h"
#include "fake_backend.h"

namespace fermata::testing {

struct FakeGrammarOptions {
    std::vector<std::string> texts = {};
    int fails_after = -1;    // tokens consumed; the next call of any kind fails
    int closing_looks = 0;   // that a search for an end takes
    bool has_memory = true;  // false: there is never a matcher
    std::function<void()> before_mask = [] {};
};

class FakeGrammar final : public Grammar {
   public:
    explicit FakeGrammar(FakeGrammarOptions options);

    std::unique_ptr<Matcher> make_matcher() const override;
    std::size_t bytes() const override { return 1; }
    int masks() const { return masks_; }  // computed by all its matchers
    int looks() const { return looks_; }  // of all their searches for an end

   private:
    std::shared_ptr<const FakeGrammarOptions> options_;
    mutable std::atomic<int> masks_ = 0;
    mutable std::atomic<int> looks_ = 0;
};

std::shared_ptr<const FakeGrammar> texts(std::vector<std::string> texts);

}  // namespace fermata::testing
