// The error of binary64 results in ulps of the exact value, by MPFR at 112 bits, or 224 where the reference
// cancels. The declarations stand in for mpfr.h, which a gmpy2 wheel does not bring.
#include <cmath>
#include <cstdint>
#include <cstring>

struct mp { long precision; int sign; long exponent; void *limbs; };
enum { NEAREST = 0, PRECISION = 112, CANCELLING = 224 };
extern "C" {
void mpfr_init2(mp *, long); void mpfr_clear(mp *); int mpfr_set_d(mp *, double, int); double mpfr_get_d(const mp *, int);
int mpfr_sub_d(mp *, const mp *, double, int); int mpfr_mul_2si(mp *, const mp *, long, int);
int mpfr_add_ui(mp *, const mp *, unsigned long, int); int mpfr_ui_div(mp *, unsigned long, const mp *, int);
int mpfr_mul(mp *, const mp *, const mp *, int); int mpfr_div(mp *, const mp *, const mp *, int);
int mpfr_sub(mp *, const mp *, const mp *, int); int mpfr_add(mp *, const mp *, const mp *, int); int mpfr_neg(mp *, const mp *, int); int mpfr_const_pi(mp *, int);
int mpfr_set_str(mp *, const char *, int, int); int mpfr_sqrt_ui(mp *, unsigned long, int); int mpfr_sqrt(mp *, const mp *, int);
int mpfr_lgamma(mp *, int *, const mp *, int); int mpfr_mul_d(mp *, const mp *, double, int);
#define ONE(f) int mpfr_##f(mp *, const mp *, int);
#define ALL(M) M(exp) M(exp2) M(exp10) M(expm1) M(log) M(log2) M(log10) M(log1p) M(sin) M(cos) M(tan) M(sinpi) \
  M(cospi) M(asin) M(acos) M(atan) M(sinh) M(cosh) M(tanh) M(asinh) M(acosh) M(atanh) M(erf) M(erfc) M(cbrt) M(digamma) M(gamma)
ALL(ONE) ONE(rec_sqrt)
#define TWO(f) int mpfr_##f(mp *, const mp *, const mp *, int);
TWO(pow) TWO(atan2) TWO(hypot)
}
static void square_root(mp *r, const mp *x) { mpfr_rec_sqrt(r, x, NEAREST); }
static void logistic(mp *r, const mp *x) {
  mpfr_neg(r, x, NEAREST); mpfr_exp(r, r, NEAREST); mpfr_add_ui(r, r, 1, NEAREST); mpfr_ui_div(r, 1, r, NEAREST); }
static void softplus(mp *r, const mp *x) {           // the sum of x and log1p(exp(-x)) where exp(x) is huge
  double v = mpfr_get_d(x, NEAREST);
  if (v < 1000) { mpfr_exp(r, x, NEAREST); mpfr_log1p(r, r, NEAREST); }
  else mpfr_add_ui(r, x, 0, NEAREST); }
static void loggamma(mp *r, const mp *x) { int sign; mpfr_lgamma(r, &sign, x, NEAREST); }
static void gelu_erf(mp *r, const mp *x) {
  mp a, b; mpfr_init2(&a, PRECISION); mpfr_init2(&b, PRECISION);
  mpfr_sqrt_ui(&a, 2, NEAREST); mpfr_div(&a, x, &a, NEAREST); mpfr_neg(&a, &a, NEAREST); mpfr_erfc(&b, &a, NEAREST);
  mpfr_mul(r, x, &b, NEAREST); mpfr_mul_2si(r, r, -1, NEAREST); mpfr_clear(&a); mpfr_clear(&b); }
static void gelu_tanh(mp *r, const mp *x) {
  mp a, b; mpfr_init2(&a, PRECISION); mpfr_init2(&b, PRECISION);
  mpfr_set_str(&a, "0.044715", 10, NEAREST); mpfr_mul(&a, &a, x, NEAREST); mpfr_mul(&a, &a, x, NEAREST);
  mpfr_add_ui(&a, &a, 1, NEAREST); mpfr_mul(&a, &a, x, NEAREST); mpfr_const_pi(&b, NEAREST);
  mpfr_ui_div(&b, 8, &b, NEAREST); mpfr_sqrt(&b, &b, NEAREST); mpfr_mul(&a, &a, &b, NEAREST);
  logistic(&b, &a); mpfr_mul(r, x, &b, NEAREST); mpfr_clear(&a); mpfr_clear(&b); }
static void logaddexp(mp *r, const mp *x, const mp *y) {
  double u = mpfr_get_d(x, NEAREST), v = mpfr_get_d(y, NEAREST);
  if (u < v) { const mp *t = x; x = y; y = t; }
  if (u != u || v != v) { mpfr_add(r, x, y, NEAREST); return; }
  if (std::fabs(u) > 1e6 || std::fabs(v) > 1e6) { mpfr_add_ui(r, x, 0, NEAREST); return; }
  mp a; mpfr_init2(&a, 2200); mpfr_sub(&a, y, x, NEAREST); mpfr_exp(r, &a, NEAREST); mpfr_log1p(r, r, NEAREST);
  mpfr_add(r, r, x, NEAREST); mpfr_clear(&a); }

// ------------------------------------------------ a filter: the 64-bit values of glibc's functions on x86
// Documented errors are below 10 units of the 64th bit; where an error of MARGIN (16 units; 64 for our digamma)
// could matter, MPFR decides.
typedef long double ld;
static const ld PI = 3.14159265358979323846264338327950288L, MARGIN = 0x1p-7L;
static ld extended_logistic(ld x) { return 1 / (1 + expl(-x)); }
static ld extended_softplus(ld x) { return x < 60 ? log1pl(expl(x)) : x; }
static ld extended_rsqrt(ld x) { return 1 / sqrtl(x); }
static ld half_turns(ld x, int shift) {              // sin(pi (|x| + shift / 2))
  ld b = fabsl(x) - 2 * rintl(fabsl(x) / 2), k = rintl(2 * b); b -= k / 2;
  int n = (int)k + shift; ld y = n & 1 ? cosl(PI * b) : sinl(PI * b);
  return n & 2 ? -y : y; }
static ld extended_sinpi(ld x) { return copysignl(1, x) * half_turns(x, 0); }
static ld extended_cospi(ld x) { return half_turns(x, 1); }
static ld extended_gelu_erf(ld x) {                  // with the rounding error of -x / sqrt 2, magnified in the tail
  const ld C = 0.707106781186547524400844362104849039L, LOW = 1.8950325588932570797e-20L; ld z = -x * C, low = fmal(-x, C, -z) - x * LOW;
  return x / 2 * (erfcl(z) - low * 1.128379167095512574L * expl(-z * z)); }
static ld extended_gelu_tanh(ld x) {                 // the decimal 0.044715 needs more bits than a double has
  return fabsl(x) < 2 ? x / (1 + expl(-sqrtl(8 / PI) * (x + 0.044715L * x * x * x))) : NAN; }
static ld extended_digamma(ld x) {                   // NAN where the terms cancel
  static const ld B[] = {1.L/12, -1.L/120, 1.L/252, -1.L/240, 1.L/132, -691.L/32760, 1.L/12, -3617.L/8160, 43867.L/14364};
  ld a = fabsl(x), sum = 0, z, series = 0, most = 0;
  if (x < 0) { ld r = a - rintl(a); sum = r ? PI * cosl(PI * r) / sinl(PI * r) : NAN; most = fabsl(sum); sum += 1 / a; }
  if (a < 0x1p-60L || a > 0x1p50L) return NAN;
  for (; a < 18; a++) sum -= 1 / a, most += 1 / a;
  z = 1 / (a * a);
  for (int k = 8; k >= 0; k--) series = (series + B[k]) * z;
  sum += logl(a) - 1 / (2 * a) - series; most += logl(a);
  return fabsl(sum) * 4 > most ? sum : NAN; }       // 20 roundings of `most` at most
static ld extended_gamma(ld x) { return tgammal(x); }
static ld extended_lgamma(ld x) { return lgammal(x); }
#define FILTERED(M) M(exp) M(exp2) M(exp10) M(expm1) M(log) M(log2) M(log10) M(log1p) M(sin) M(cos) M(tan) M(asin) M(acos) \
  M(atan) M(sinh) M(cosh) M(tanh) M(asinh) M(acosh) M(atanh) M(erf) M(erfc) M(cbrt)
#define OWN(M) M(logistic) M(softplus) M(rsqrt) M(sinpi) M(cospi) M(gelu_erf) M(gelu_tanh) M(digamma) M(gamma) M(lgamma)
static const struct { const char *name; ld (*f)(ld); ld (*g)(ld, ld); } EXTENDED[] = {
#if __LDBL_MANT_DIG__ >= 64 && defined(__GLIBC__)
#define X1(f) {#f, f##l, 0},
#define X2(f) {#f, extended_##f, 0},
  FILTERED(X1) OWN(X2) {"pow", 0, powl}, {"atan2", 0, atan2l}, {"hypot", 0, hypotl},
#endif
  {"", 0, 0}
};

// Whether the 64-bit value v shows that o is off by less than `most` ulps, and whether o is the nearest number.
static bool settled(ld v, double o, double most, ld margin, double *misrounded) {
  if (!(fabsl(v) > 0x1p-1000L && fabsl(v) < 0x1p1000L)) return false;
  int e; frexpl(v, &e);
  ld off = ldexpl(fabsl(v - (double)v), 53 - e), error = ldexpl(fabsl(v - o), 53 - e);
  if (!(off < 0.5L - margin && error + margin < most)) return false;
  *misrounded += o != (double)v;
  return true; }

// ------------------------------------------------ MPFR, the judge
typedef void (*one)(mp *, const mp *);
typedef void (*two)(mp *, const mp *, const mp *);
static const struct { const char *name; one f; two g; } FUNCTIONS[] = {
#define E1(f) {#f, [](mp *r, const mp *x) { mpfr_##f(r, x, NEAREST); }, 0},
#define E2(f) {#f, 0, [](mp *r, const mp *x, const mp *y) { mpfr_##f(r, x, y, NEAREST); }},
  ALL(E1) E2(pow) E2(atan2) E2(hypot)
  {"rsqrt", square_root, 0}, {"logistic", logistic, 0}, {"softplus", softplus, 0}, {"lgamma", loggamma, 0},
  {"gelu_erf", gelu_erf, 0}, {"gelu_tanh", gelu_tanh, 0}, {"logaddexp", 0, logaddexp},
};

static double in_ulps(const mp *r, double h, double got, mp *d) {          // (got - exact) / ulp(exact)
  double size = std::fabs(h); int e;
  std::frexp(size < 0x1p-1022 ? 0x1p-1022 : size, &e);
  mpfr_sub_d(d, r, got, NEAREST); mpfr_mul_2si(d, d, 53 - e, NEAREST);
  return -mpfr_get_d(d, NEAREST);
}

// errors[i]: the signed error of o[i] at x[i] in ulps, for a one-argument function and finite results.
extern "C" int errors(const char *name, const double *x, const double *o, int64_t n, double *found) {
  one f = 0;
  for (auto &e : FUNCTIONS) if (!strcmp(e.name, name)) f = e.f;
  if (!f) return -1;
  mp a, r, d; mpfr_init2(&a, 53); mpfr_init2(&r, PRECISION); mpfr_init2(&d, 64);
  for (int64_t i = 0; i < n; i++) {
    mpfr_set_d(&a, x[i], NEAREST); f(&r, &a);
    found[i] = in_ulps(&r, mpfr_get_d(&r, NEAREST), o[i], &d);
  }
  mpfr_clear(&a); mpfr_clear(&r); mpfr_clear(&d);
  return 0;
}

// The error beyond the absolute part of a bound: `slack` at x < 0 (one argument), or times min(|x|, |y|) (two).
static double beyond(double error, double h, double slack) {
  int e; std::frexp(std::fabs(h) < 0x1p-1022 ? 0x1p-1022 : h, &e);
  error -= std::ldexp(slack, 53 - e);
  return error < 0 ? 0 : error; }

// out: [worst of normal results, argument 1, argument 2, worst of subnormal results, misrounded, special values wrong]
extern "C" int ulps(const char *name, const double *x, const double *y, const double *o, int64_t n, double slack, double *out) {
  one f = 0; two g = 0;
  for (auto &e : FUNCTIONS) if (!strcmp(e.name, name)) f = e.f, g = e.g;
  if (!f && !g) return -1;
  mp a, b, r, d; mpfr_init2(&a, 53); mpfr_init2(&b, 53); mpfr_init2(&d, 64);
  mpfr_init2(&r, g == logaddexp ? CANCELLING : PRECISION);
  ld (*quick)(ld) = 0, (*quick2)(ld, ld) = 0, margin = strcmp(name, "digamma") ? MARGIN : 4 * MARGIN;
  for (auto &entry : EXTENDED) if (!strcmp(entry.name, name)) quick = entry.f, quick2 = entry.g;
  for (int i = 0; i < 6; i++) out[i] = 0;
  for (int64_t i = 0; i < n; i++) {
    if (quick && settled(quick(x[i]), o[i], out[0], margin, &out[4])) continue;
    if (quick2 && settled(quick2(x[i], y[i]), o[i], out[0], margin, &out[4])) continue;
    mpfr_set_d(&a, x[i], NEAREST);
    if (g) mpfr_set_d(&b, y[i], NEAREST);
    if (f) f(&r, &a); else g(&r, &a, &b);
    double h = mpfr_get_d(&r, NEAREST);
    if (h != h || std::isinf(h) || h == 0) {           // the overflow threshold and signed zeros must be right
      bool same = h != h ? o[i] != o[i] : h == o[i] && std::signbit(h) == std::signbit(o[i]);
      bool ours = !strncmp(name, "gelu", 4) && x[i] < -1e300;       // -inf * 0: -0 here
      if (!strcmp(name, "rsqrt") && x[i] == 0) same = std::isinf(o[i]) && std::signbit(o[i]) == std::signbit(x[i]);
      if (!same && !ours && !(h == 0 && std::fabs(o[i]) <= 0x1p-1074)) { if (!out[5]++) out[1] = x[i], out[2] = g ? y[i] : 0; }
      continue; }
    bool subnormal = std::fabs(h) < 0x1p-1022;
    double got = std::isinf(o[i]) ? std::copysign(0x1.fffffffffffffp1023, o[i]) : o[i];
    double error = std::fabs(in_ulps(&r, h, got, &d)) + std::isinf(o[i]);
    if (slack) error = beyond(error, h, slack * (g ? std::fmin(std::fabs(x[i]), std::fabs(y[i])) : x[i] < 0));
    if (o[i] != o[i]) error = INFINITY;
    out[4] += o[i] != h;
    if (subnormal) { if (error > out[3]) out[3] = error; }
    else if (error > out[0]) { out[0] = error; if (!out[5]) out[1] = x[i], out[2] = g ? y[i] : 0; }
  }
  mpfr_clear(&a); mpfr_clear(&b); mpfr_clear(&r); mpfr_clear(&d);
  return 0;
}
