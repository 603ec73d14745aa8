// Causal attention of rows that share a prefix, forward and backward, with AMX tiles.
//
// Contract: q, k, v are (R, H, L, 64) bfloat16, k0 and v0 are (H, P, 64). A row's query sees all P
// prefix keys and its own row's keys up to itself. Single-threaded. PyTorch's CPU kernel spends
// about ten times as long in the backward pass; that was most of a training step.
#include <immintrin.h>
#include <sys/syscall.h>
#include <torch/extension.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace {

using Half = uint16_t;                        // bfloat16 bits
constexpr int N = 64;                         // block size and head size
constexpr float LOG2E = 1.4426950408889634f;
constexpr float SCALE = 0.125f;               // 1 / sqrt(64)

struct alignas(64) Block { Half at[N][N]; };                  // rows, zero beyond the end
struct alignas(64) Packed { uint32_t at[N / 2][N]; };         // right operand: pairs along the inner dimension
struct alignas(64) Square { float at[N][N]; };

struct Tiles {
  alignas(64) uint8_t before[64], mine[64];
  Tiles() {
    syscall(SYS_arch_prctl, 0x1023, 18);  // ask for the tile registers
    memset(mine, 0, 64);
    mine[0] = 1;
    for (int t = 0; t < 8; t++) {
      mine[16 + 2 * t] = 64;
      mine[48 + t] = 16;
    }
    _tile_storeconfig(before);
    _tile_loadconfig(mine);
  }
  ~Tiles() { before[0] ? _tile_loadconfig(before) : _tile_release(); }
};

// C (+)= A B, all 64 x 64.
inline void multiply(const Half* a, long lda, const Packed& b, Square& c, bool add) {
  for (int m = 0; m < N; m += 32)
    for (int n = 0; n < N; n += 32) {
      if (add) {
        _tile_loadd(0, &c.at[m][n], 256);
        _tile_loadd(1, &c.at[m][n + 16], 256);
        _tile_loadd(2, &c.at[m + 16][n], 256);
        _tile_loadd(3, &c.at[m + 16][n + 16], 256);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      for (int k = 0; k < 2; k++) {
        _tile_loadd(4, a + m * lda + 32 * k, lda * 2);
        _tile_loadd(5, a + (m + 16) * lda + 32 * k, lda * 2);
        _tile_loadd(6, &b.at[16 * k][n], 256);
        _tile_loadd(7, &b.at[16 * k][n + 16], 256);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, &c.at[m][n], 256);
      _tile_stored(1, &c.at[m][n + 16], 256);
      _tile_stored(2, &c.at[m + 16][n], 256);
      _tile_stored(3, &c.at[m + 16][n + 16], 256);
    }
}

inline __m512 exp2v(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-126));
  __m512 whole = _mm512_roundscale_ps(x, 0), f = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(1.3333558e-3f);
  for (float c : {9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f}) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c));
  return _mm512_scalef_ps(p, whole);
}

inline void store_half(Half* to, __m512 x) { _mm256_storeu_si256((__m256i*)to, (__m256i)_mm512_cvtneps_pbh(x)); }

Half half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

int blocks(int rows) { return (rows + N - 1) / N; }

void load(Block& to, const Half* from, int rows) {
  rows = std::min(rows, N);
  memcpy(&to, from, rows * N * 2);
  memset(&to.at[rows], 0, (N - rows) * N * 2);
}

// The transposed block as right operand: inner dimension is the head size.
void pack_across(Packed& to, const Block& from) {
  const uint32_t* x = (const uint32_t*)from.at;
  for (int n = 0; n < N; n += 16)
    for (int k = 0; k < N / 2; k++)
      for (int i = 0; i < 16; i++) to.at[k][n + i] = x[(n + i) * (N / 2) + k];
}

// The block as right operand: inner dimension is its rows.
void pack_down(Packed& to, const Block& from) {
  for (int k = 0; k < N / 2; k++)
    for (int n = 0; n < N; n++) to.at[k][n] = from.at[2 * k][n] | (uint32_t)from.at[2 * k + 1][n] << 16;
}

const Half* bits(const torch::Tensor& t) { return (const Half*)t.data_ptr(); }

struct Keys {
  std::vector<Packed> across, down;
  void set(const Half* k, const Half* v, int rows) {
    across.resize(blocks(rows));
    down.resize(blocks(rows));
    Block b;
    for (int j = 0; j < blocks(rows); j++) {
      load(b, k + j * N * N, rows - j * N);
      pack_across(across[j], b);
      load(b, v + j * N * N, rows - j * N);
      pack_down(down[j], b);
    }
  }
};

}  // namespace

// Returns the output like q, and the base-2 logarithm of each query's softmax sum, (R, H, L).
std::vector<torch::Tensor> forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor k0, torch::Tensor v0) {
  Tiles tiles;
  int R = q.size(0), H = q.size(1), L = q.size(2), P = k0.size(1), B = blocks(L), PB = blocks(P);
  auto out = torch::empty({R, H, L, N}, q.options());
  auto sums = torch::empty({R, H, L}, q.options().dtype(torch::kFloat));
  Keys prefix, own;
  std::vector<Square> scores(PB + B);
  std::vector<Block> probs(PB + B);
  Block queries;
  Square result;
  for (int h = 0; h < H; h++) {
    if (P) prefix.set(bits(k0) + (long)h * P * N, bits(v0) + (long)h * P * N, P);
    for (int r = 0; r < R; r++) {
      long base = ((long)r * H + h) * L;
      own.set(bits(k) + base * N, bits(v) + base * N, L);
      for (int i = 0; i < B; i++) {
        int count = std::min(N, L - i * N), used = PB + i + 1;
        load(queries, bits(q) + (base + i * N) * N, L - i * N);
        for (int j = 0; j < used; j++) multiply(queries.at[0], N, j < PB ? prefix.across[j] : own.across[j - PB], scores[j], false);
        float inverse[N];
        for (int a = 0; a < N; a++) {
          __m512 top = _mm512_set1_ps(-1e30f);
          for (int j = 0; j < used; j++) {
            int limit = j < PB ? P - j * N : j == PB + i ? a + 1 : N;
            if (limit < N)
              for (int n = limit; n < N; n++) scores[j].at[a][n] = -1e30f;
            for (int n = 0; n < N; n += 16) top = _mm512_max_ps(top, _mm512_load_ps(&scores[j].at[a][n]));
          }
          __m512 c = _mm512_set1_ps(SCALE * LOG2E), shift = _mm512_set1_ps(-_mm512_reduce_max_ps(top) * SCALE * LOG2E), total = _mm512_setzero_ps();
          for (int j = 0; j < used; j++)
            for (int n = 0; n < N; n += 16) {
              __m512 p = exp2v(_mm512_fmadd_ps(_mm512_load_ps(&scores[j].at[a][n]), c, shift));
              total = _mm512_add_ps(total, p);
              store_half(&probs[j].at[a][n], p);
            }
          float sum = _mm512_reduce_add_ps(total);
          inverse[a] = 1 / sum;
          if (a < count) sums.data_ptr<float>()[base + i * N + a] = std::log2(sum) - _mm512_cvtss_f32(shift);
        }
        for (int j = 0; j < used; j++) multiply(probs[j].at[0], N, j < PB ? prefix.down[j] : own.down[j - PB], result, j > 0);
        Half* to = (Half*)bits(out) + (base + i * N) * N;
        for (int a = 0; a < count; a++)
          for (int n = 0; n < N; n += 16) store_half(to + a * N + n, _mm512_mul_ps(_mm512_load_ps(&result.at[a][n]), _mm512_set1_ps(inverse[a])));
      }
    }
  }
  return {out, sums};
}

namespace {

struct Query {
  Packed across, down, grad_across, grad_down;
  float sum[N], delta[N];
  Square grad;  // transposed: head size x queries
};

struct KeyBlock {
  Block k, v, k_turned;
  Square grad_k, grad_v;
  void set(const Half* from_k, const Half* from_v, int rows) {
    load(k, from_k, rows);
    load(v, from_v, rows);
    for (int a = 0; a < N; a++)
      for (int n = 0; n < N; n++) k_turned.at[n][a] = k.at[a][n];
    memset(&grad_k, 0, sizeof grad_k);
    memset(&grad_v, 0, sizeof grad_v);
  }
  void get(Half* to_k, Half* to_v, int rows) {
    for (int a = 0; a < std::min(rows, N); a++)
      for (int n = 0; n < N; n += 16) {
        store_half(to_k + a * N + n, _mm512_load_ps(&grad_k.at[a][n]));
        store_half(to_v + a * N + n, _mm512_load_ps(&grad_v.at[a][n]));
      }
  }
};

// One key block against one query block; `valid` keys exist, `diagonal`: both are the same rows.
void pair(KeyBlock& key, Query& query, int valid, bool diagonal) {
  static thread_local Square s, dp;
  static thread_local Block p, ds;
  static thread_local Packed packed;
  multiply(key.k.at[0], N, query.across, s, false);
  multiply(key.v.at[0], N, query.grad_across, dp, false);
  const __m512 c = _mm512_set1_ps(SCALE * LOG2E);
  for (int a = 0; a < N; a++)
    for (int n = 0; n < N; n += 16) {
      __m512 x = exp2v(_mm512_fmsub_ps(_mm512_load_ps(&s.at[a][n]), c, _mm512_loadu_ps(query.sum + n)));
      int first = a >= valid ? 16 : diagonal ? a - n : 0;  // queries before the key do not see it
      if (first > 0) x = first >= 16 ? _mm512_setzero_ps() : _mm512_maskz_mov_ps((__mmask16)(0xffff << first), x);
      __m512 d = _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(SCALE)), _mm512_sub_ps(_mm512_load_ps(&dp.at[a][n]), _mm512_loadu_ps(query.delta + n)));
      store_half(&p.at[a][n], x);
      store_half(&ds.at[a][n], d);
    }
  pack_down(packed, ds);
  multiply(p.at[0], N, query.grad_down, key.grad_v, true);
  multiply(ds.at[0], N, query.down, key.grad_k, true);
  multiply(key.k_turned.at[0], N, packed, query.grad, true);
}

}  // namespace

// Gradients of q, k, v, k0, v0, given the forward pass' results and the output's gradient.
std::vector<torch::Tensor> backward(torch::Tensor grad, torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor k0, torch::Tensor v0, torch::Tensor out, torch::Tensor sums) {
  Tiles tiles;
  int R = q.size(0), H = q.size(1), L = q.size(2), P = k0.size(1), B = blocks(L), PB = blocks(P);
  auto gq = torch::empty_like(q), gk = torch::empty_like(k), gv = torch::empty_like(v), gk0 = torch::empty_like(k0), gv0 = torch::empty_like(v0);
  std::vector<Query> queries(R * B);
  static thread_local KeyBlock key;
  Block b, g;
  for (int h = 0; h < H; h++) {
    for (int r = 0; r < R; r++)
      for (int i = 0; i < B; i++) {
        Query& query = queries[r * B + i];
        long at = ((long)r * H + h) * L + i * N;
        int count = std::min(N, L - i * N);
        load(b, bits(q) + at * N, L - i * N);
        pack_across(query.across, b);
        pack_down(query.down, b);
        load(g, bits(grad) + at * N, L - i * N);
        pack_across(query.grad_across, g);
        pack_down(query.grad_down, g);
        load(b, bits(out) + at * N, L - i * N);
        memset(query.sum, 0, sizeof query.sum);
        memcpy(query.sum, sums.data_ptr<float>() + at, count * 4);
        auto wide = [](const Half* x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)x)), 16)); };
        for (int a = 0; a < N; a++) {
          __m512 total = _mm512_setzero_ps();
          for (int n = 0; n < N; n += 16) total = _mm512_fmadd_ps(wide(&b.at[a][n]), wide(&g.at[a][n]), total);
          query.delta[a] = _mm512_reduce_add_ps(total);
        }
        memset(&query.grad, 0, sizeof query.grad);
      }
    for (int j = 0; j < PB; j++) {
      long at = (long)h * P + j * N;
      key.set(bits(k0) + at * N, bits(v0) + at * N, P - j * N);
      for (Query& query : queries) pair(key, query, P - j * N, false);
      key.get((Half*)bits(gk0) + at * N, (Half*)bits(gv0) + at * N, P - j * N);
    }
    for (int r = 0; r < R; r++)
      for (int j = 0; j < B; j++) {
        long at = ((long)r * H + h) * L + j * N;
        key.set(bits(k) + at * N, bits(v) + at * N, L - j * N);
        for (int i = j; i < B; i++) pair(key, queries[r * B + i], N, i == j);
        key.get((Half*)bits(gk) + at * N, (Half*)bits(gv) + at * N, L - j * N);
      }
    for (int r = 0; r < R; r++)
      for (int i = 0; i < B; i++) {
        Half* to = (Half*)bits(gq) + (((long)r * H + h) * L + i * N) * N;
        for (int a = 0; a < std::min(N, L - i * N); a++)
          for (int n = 0; n < N; n++) to[a * N + n] = half(queries[r * B + i].grad.at[n][a]);
      }
  }
  return {gq, gk, gv, gk0, gv0};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward);
  m.def("backward", &backward);
}
