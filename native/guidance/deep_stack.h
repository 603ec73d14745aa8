// Runs code that recurses as deep as its input says.
#pragma once

#include <cstddef>
#include <functional>

namespace fermata {

// Calls `body` on a thread with a stack of `bytes` (rounded up to pages; memory is taken only as it
// is used) and waits for its end. An exception of `body` is thrown here. false: there is no memory
// for the thread, `body` was not called.
bool on_deep_stack(std::size_t bytes, const std::function<void()>& body);

}  // namespace fermata
