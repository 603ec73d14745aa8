// Host memory for caches that takes room only where it is used.
#pragma once

namespace fermata {

// From now on a large buffer of ggml's in host memory is cleared by giving its pages back to the
// system, which gives zeros when they are used next. ggml writes zeros into all of it: a cache then
// takes its full size from the start, however few positions it holds. Elsewhere than on Linux:
// nothing.
void clear_buffers_by_page();

}  // namespace fermata
