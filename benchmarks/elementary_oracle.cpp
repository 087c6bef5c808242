// The sound filter of the exhaustive run: libm's binary64 value y has an error far below 2^-48 relative (32 ulps), so
// if y (1 - 2^-48) and y (1 + 2^-48) round to one binary32 number, that is the correctly rounded result. The two
// gelus magnify the rounding of an argument: by at most 2 * 104 in the range of binary32, hence 2^-42 there.
// With AVX2 and glibc the values come from libmvec, glibc's vector functions (documented error: 4 ulps).
#include <cmath>
#include <cstdint>
#include <cstring>
#include <time.h>

typedef void (*kernel)(const void *, void *, int64_t);
typedef double v4 __attribute__((vector_size(32)));
static const double PI = 3.14159265358979323846;

#if defined(__AVX2__) && defined(__GLIBC__)
#define VECTOR(f) extern "C" v4 _ZGVdN4v_##f(v4); \
  static v4 f##4(v4 x) { return _ZGVdN4v_##f(x); }
#else
#define VECTOR(f) static v4 f##4(v4 x) { for (int i = 0; i < 4; i++) x[i] = std::f(x[i]); return x; }
static double exp10(double x) { return std::pow(10, x); }
#endif
#define ALL(M) M(exp) M(exp2) M(exp10) M(expm1) M(log) M(log2) M(log10) M(log1p) M(sin) M(cos) M(tan) M(asin) \
  M(acos) M(atan) M(sinh) M(cosh) M(tanh) M(asinh) M(acosh) M(atanh) M(erf) M(erfc) M(cbrt)
ALL(VECTOR)
#define EACH(e) for (int i = 0; i < 4; i++) { double t = x[i]; x[i] = e; }

static v4 rsqrt4(v4 x) { EACH(1 / std::sqrt(t)) return x; }
static v4 logistic4(v4 x) { return 1 / (1 + exp4(-x)); }
static v4 softplus4(v4 x) {
  v4 y = log1p4(exp4(x < 40 ? x : (v4){} + 40)); return x <= 40 ? y : x; }
static v4 half_turns(v4 x, int shift) {              // sin(pi (|x| + shift / 2)); zeros are +0
  v4 k, b; for (int i = 0; i < 4; i++) { double a = std::fabs(x[i]); b[i] = a - 2 * std::rint(a / 2);
    k[i] = std::rint(2 * b[i]); b[i] -= 0.5 * k[i]; }
  v4 s = sin4(PI * b), c = cos4(PI * b);
  for (int i = 0; i < 4; i++) { if (!std::isfinite(x[i])) { s[i] = NAN; continue; }
    int n = (int)k[i] + shift; double y = n & 1 ? (b[i] == 0.5 || b[i] == -0.5 ? 0.0 : c[i]) : s[i];
    y = n & 2 ? -y : y; s[i] = y == 0 ? 0.0 : y; }
  return s; }
static v4 sinpi4(v4 x) { v4 y = half_turns(x, 0); EACH(std::signbit(t) ? -y[i] : y[i]) return x; }
static v4 cospi4(v4 x) { return half_turns(x, 1); }
static v4 gelu_erf4(v4 x) {
  v4 y = x * 0.5 * erfc4(x * -0.70710678118654752); EACH(std::isinf(t) ? (t > 0 ? t : -0.0) : y[i]) return x; }
static v4 gelu_tanh4(v4 x) {
  v4 y = x / (1 + exp4(-1.59576912160573071 * (x + 0.044715 * x * x * x)));
  EACH(std::isinf(t) ? (t > 0 ? t : -0.0) : y[i]) return x; }

static const struct { const char *name; v4 (*f)(v4); } FUNCTIONS[] = {
#define F(name) {#name, name##4},
  ALL(F) F(rsqrt) F(logistic) F(softplus) F(sinpi) F(cospi) F(gelu_erf) F(gelu_tanh)
};

static v4 (*find(const char *name))(v4) {
  for (auto &entry : FUNCTIONS) if (!strcmp(entry.name, name)) return entry.f;
  return 0; }

static inline uint32_t word(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }

// libm's values, for formats narrower than binary32; n a multiple of 4.
extern "C" int values(const char *name, const double *x, double *y, int64_t n) {
  auto f = find(name);
  if (!f) return -1;
  for (int64_t i = 0; i < n; i += 4) { v4 v; memcpy(&v, x + i, 32); v = f(v); memcpy(y + i, &v, 32); }
  return 0;
}

// 0: certainly right; 1: certainly wrong; 2: the filter cannot tell.
static inline int verdict(double y, float o, double margin) {
  double d = std::fabs(y) < INFINITY ? y * margin : 0;
  uint32_t low = word((float)(y - d)), high = word((float)(y + d)), zero = word((float)y);
  low = y == 0 ? zero : low, high = y == 0 ? zero : high;
  int differ = word(o) != low;
  return y != y ? o == o : low != high ? 2 : differ;
}

// The words i * step mod 2^32 for i in [from, to): wrong[0..] gets the inputs whose result is certainly wrong, near[0..]
// those the filter cannot decide, `capacity` of each at most; counts[0] and counts[1] are how many there were.
extern "C" int filter(const char *name, kernel run, uint64_t from, uint64_t to, uint64_t step, uint32_t *wrong,
                      uint32_t *near, int64_t capacity, int64_t *counts) {
  enum { N = 1 << 12 };
  auto f = find(name);
  if (!f) return -1;
  double margin = strncmp(name, "gelu", 4) ? 0x1p-48 : 0x1p-42;
  alignas(32) float x[N], o[N]; alignas(32) double y[N]; uint32_t *lists[2] = {wrong, near};
  counts[0] = counts[1] = 0;
  for (uint64_t s = from; s < to; s += N) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)((s + i) * step); memcpy(&x[i], &u, 4); y[i] = x[i]; }
    run(x, o, N);
    for (int i = 0; i < N; i += 4) { v4 v; memcpy(&v, y + i, 32); v = f(v); memcpy(y + i, &v, 32); }
    for (int c = 0; c < N; c += 64) {
      int any = 0;
      for (int i = c; i < c + 64; i++) any |= verdict(y[i], o[i], margin);
      for (int i = c; any && i < c + 64; i++) {
        int v = verdict(y[i], o[i], margin) - 1;
        if (v >= 0 && counts[v]++ < capacity) lists[v][counts[v] - 1] = word(x[i]);
      }
    }
  }
  return 0;
}

// For the negative words in [from, to) of an odd (flip = 2^31) or even (flip = 0) function: wrong[0..] gets those whose
// result is not that of the positive word with the sign flipped, NaN aside. Returns how many there were.
extern "C" int64_t mirror(kernel run, uint64_t from, uint64_t to, uint32_t flip, uint32_t *wrong, int64_t capacity) {
  enum { N = 1 << 12 };
  alignas(32) float x[N], o[N], z[N], p[N];
  int64_t count = 0;
  for (uint64_t s = from; s < to; s += N) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)(s + i); memcpy(&x[i], &u, 4); z[i] = -x[i]; }
    run(x, o, N); run(z, p, N);
    for (int i = 0; i < N; i++)
      if (word(o[i]) != (word(p[i]) ^ flip) && !(o[i] != o[i] && p[i] != p[i]) && count++ < capacity)
        wrong[count - 1] = word(x[i]);
  }
  return count;
}

// How many of the words in [from, to) two kernels give different words for, NaN aside; the first of them in `where`.
extern "C" int64_t differing(kernel run, kernel other, uint64_t from, uint64_t to, uint32_t *where, int64_t capacity) {
  enum { N = 1 << 12 };
  alignas(64) float x[N], o[N], p[N];
  int64_t count = 0;
  for (uint64_t s = from; s < to; s += N) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)(s + i); memcpy(&x[i], &u, 4); }
    run(x, o, N); other(x, p, N);
    int any = 0;
    for (int i = 0; i < N; i++) any |= word(o[i]) != word(p[i]) && !(o[i] != o[i] && p[i] != p[i]);
    for (int i = 0; any && i < N; i++)
      if (word(o[i]) != word(p[i]) && !(o[i] != o[i] && p[i] != p[i]) && count++ < capacity) where[count - 1] = word(x[i]);
  }
  return count;
}

// The greatest relative distance of the body's unrounded value from libm's, over every step-th input.
extern "C" double distance(const char *name, kernel run, uint64_t step) {
  enum { N = 1 << 12 };
  auto f = find(name);
  alignas(32) double x[N], o[N];
  double most = 0;
  for (uint64_t s = 0; s < (1ull << 32); s += N * step) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)(s + i * step); float v; memcpy(&v, &u, 4); x[i] = v; }
    run(x, o, N);
    for (int i = 0; i < N; i += 4) {
      v4 v; memcpy(&v, x + i, 32); v = f(v);
      for (int j = 0; j < 4; j++) {
        double a = std::fabs(v[j]), e = std::fabs((o[i + j] - v[j]) / v[j]);
        if (a < 0x1p128 && a > 0x1p-150 && e > most) most = e;
      }
    }
  }
  return most;
}

// libm's own scalar functions, in a loop; binary64 if `wide`, else binary32.
template <class T> static void loop(T (*f)(T), const void *x, void *o, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((T *)o)[i] = f(((const T *)x)[i]); }
extern "C" float lgammaf_r(float, int *); extern "C" double lgamma_r(double, int *);
static float lgamma1(float x) { int s; return lgammaf_r(x, &s); }
static double lgamma1(double x) { int s; return lgamma_r(x, &s); }
static const struct { const char *name; float (*narrow)(float); double (*wide)(double); } LIBM[] = {
#define L(f) {#f, std::f, std::f},
  L(exp) L(exp2) L(expm1) L(log) L(log2) L(log10) L(log1p) L(sin) L(cos) L(tan) L(asin) L(acos) L(atan) L(sinh) L(cosh)
  L(tanh) L(asinh) L(acosh) L(atanh) L(erf) L(erfc) L(cbrt)
#ifdef __GLIBC__
  {"exp10", exp10f, exp10},
#endif
  {"lgamma", lgamma1, lgamma1}, {"gamma", std::tgamma, std::tgamma},
};
extern "C" int libm(const char *name, int wide, const void *x, void *o, int64_t n) {
  for (auto &entry : LIBM) if (!strcmp(entry.name, name)) {
    if (wide) loop(entry.wide, x, o, n); else loop(entry.narrow, x, o, n);
    return 0; }
  return -1; }

// Nanoseconds a round: `calls` calls of a one-argument kernel on n elements, without Python.
extern "C" double nanoseconds(kernel run, const void *x, void *o, int64_t n, int64_t calls) {
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int64_t i = 0; i < calls; i++) run(x, o, n);
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
}
