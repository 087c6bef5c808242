// The sound filter of the exhaustive run: libm's binary64 value y has an error far below 2^-48 relative, so if
// y (1 - 2^-48) and y (1 + 2^-48) round to one binary32 number, that is the correctly rounded result.
#include <cmath>
#include <cstdint>
#include <cstring>

typedef void (*kernel)(const void *, void *, int64_t);
typedef double (*function)(double);

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }
static double softplus(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
static double reduced(double x, int *k) {          // |x| = k/2 + r
  double b = std::fabs(x); b -= 2 * std::rint(b / 2); *k = (int)std::rint(2 * b); return b - 0.5 * *k; }
static const double PI = 3.14159265358979323846;
static double quadrant(double r, int k) {
  double y = k & 1 ? std::cos(PI * r) : std::sin(PI * r); y = k & 2 ? -y : y; return y == 0 ? 0.0 : y; }
static double sinpi(double x) {
  if (!std::isfinite(x)) return NAN; int k; double r = reduced(x, &k);
  double y = quadrant(r, k); return std::signbit(x) ? -y : y; }
static double cospi(double x) {
  if (!std::isfinite(x)) return NAN; int k; double r = reduced(x, &k); return quadrant(r, k + 1); }
static double gelu_erf(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  return (double)(x * 0.5L * erfcl(-(long double)x * 0.70710678118654752440084436210485L)); }
static double gelu_tanh(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  long double v = x, u = 1.59576912160573071176L * (v + 0.044715L * v * v * v);
  return (double)(v / (1 + expl(-u))); }

static const struct { const char *name; function f; } FUNCTIONS[] = {
#define F(name) {#name, [](double x) -> double { return name(x); }},
  F(exp) F(exp2) F(exp10) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sin) F(cos) F(tan) F(sinpi) F(cospi)
  F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(erf) F(erfc) F(cbrt) F(rsqrt)
  F(logistic) F(softplus) F(gelu_erf) F(gelu_tanh)
};

static function find(const char *name) {
  for (auto &entry : FUNCTIONS) if (!strcmp(entry.name, name)) return entry.f;
  return 0; }

static uint32_t word(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }

// libm's values, for formats narrower than binary32.
extern "C" int values(const char *name, const double *x, double *y, int64_t n) {
  function f = find(name);
  if (!f) return -1;
  for (int64_t i = 0; i < n; i++) y[i] = f(x[i]);
  return 0;
}

// The words i * step mod 2^32 for i in [from, to): wrong[0..] gets the inputs whose result is certainly wrong, near[0..] those the filter
// cannot decide, `capacity` of each at most; counts[0] and counts[1] are how many there were. -1: unknown name.
extern "C" int filter(const char *name, kernel run, uint64_t from, uint64_t to, uint64_t step, uint32_t *wrong,
                      uint32_t *near, int64_t capacity, int64_t *counts) {
  enum { N = 1 << 14 };
  function f = find(name);
  if (!f) return -1;
  static thread_local float x[N], o[N];
  counts[0] = counts[1] = 0;
  for (uint64_t s = from; s < to; s += N) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)((s + i) * step); memcpy(&x[i], &u, 4); }
    run(x, o, N / 8);
    for (int i = 0; i < N; i++) {
      double y = f((double)x[i]);
      if (y != y) { if (o[i] == o[i] && counts[0]++ < capacity) wrong[counts[0] - 1] = word(x[i]); continue; }
      double d = std::isinf(y) ? 0 : y * 0x1p-48;
      uint32_t low = word((float)(y - d)), high = word((float)(y + d));
      if (low != high) { if (counts[1]++ < capacity) near[counts[1] - 1] = word(x[i]); }
      else if (word(o[i]) != low && counts[0]++ < capacity) wrong[counts[0] - 1] = word(x[i]);
    }
  }
  return 0;
}

// The greatest relative distance of the body's unrounded value from libm's, over every step-th input.
extern "C" double distance(const char *name, kernel run, uint64_t step) {
  enum { N = 1 << 12 };
  function f = find(name);
  static thread_local double x[N], o[N];
  double most = 0;
  for (uint64_t s = 0; s < (1ull << 32); s += N * step) {
    for (int i = 0; i < N; i++) { uint32_t u = (uint32_t)(s + i * step); float v; memcpy(&v, &u, 4); x[i] = v; }
    run(x, o, N / 8);
    for (int i = 0; i < N; i++) {
      double y = f(x[i]), a = std::fabs(y);
      if (!(a < 0x1p128) || a < 0x1p-150) continue;
      double e = std::fabs((o[i] - y) / y);
      if (e > most) most = e;
    }
  }
  return most;
}
