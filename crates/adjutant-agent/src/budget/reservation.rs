//! The budget that a request needs, estimated before the request is sent.

use adjutant_core::Spend;
use adjutant_llm::{Estimate, ModelInfo, NanoUsd, Price, Request, ToolDecl, Usage};

use super::ReservationRequest;

/// The least number of output tokens that a request needs; with less left, it is not made.
const LEAST_OUTPUT: u64 = 256;
/// The number of output tokens of a request without a limit.
pub(crate) const UNLIMITED: u64 = u64::MAX;
/// The number of output tokens that the last turn of a run may have, beyond the run's own caps.
const LAST_OUTPUT: u64 = 2_048;
/// The number of tokens that a tool's declaration has besides its texts.
const TOOL_FRAME: u64 = 8;

/// Returns the need of a request with this estimated input; `last` is true if the run ends with it.
pub(crate) fn request_of(
    info: &ModelInfo,
    request: &Request,
    input: u64,
    last: bool,
) -> ReservationRequest {
    let asked = request
        .options
        .max_output_tokens
        .or(info.output_limit())
        .unwrap_or(UNLIMITED);
    let most = if last { asked.min(LAST_OUTPUT) } else { asked };
    let (input_cost, output_price) = prices(info, input);
    ReservationRequest {
        fixed: Spend {
            tokens: input,
            cost: input_cost,
            requests: 1,
            tool_calls: 0,
        },
        least_output: LEAST_OUTPUT.min(most),
        most_output: most,
        output_price,
        overdraws: last,
    }
}

/// Returns the maximum number of tokens of system prompt and tools: a reservation must not be too small, so frames of
/// declarations count here, unlike in [`EffectContext::overhead`](crate::EffectContext::overhead).
pub(crate) fn estimate_overhead(request: &Request) -> u64 {
    let tool = |tool: &ToolDecl| {
        TOOL_FRAME + Estimate.count(&tool.description) + Estimate.count(&tool.schema.to_string())
    };
    Estimate.count(&request.system) + request.tools.iter().map(tool).sum::<u64>()
}

/// Returns the greatest cost of the input, and the price of a million output tokens.
fn prices(info: &ModelInfo, input: u64) -> (NanoUsd, NanoUsd) {
    let Some(price) = &info.price else {
        return Default::default();
    };
    let whole = |usage: Usage| price.cost(&usage);
    let classes = [
        Usage {
            input_uncached: input,
            ..Usage::default()
        },
        Usage {
            cache_write: input,
            ..Usage::default()
        },
        Usage {
            cache_write: input,
            cache_write_1h: input,
            ..Usage::default()
        },
    ];
    let percent = price
        .long
        .filter(|long| input > long.above)
        .map_or(100, |long| long.output_percent);
    (
        classes.map(whole).into_iter().max().unwrap_or_default(),
        scale_output_price(price, percent),
    )
}

fn scale_output_price(price: &Price, percent: u32) -> NanoUsd {
    let scaled = u128::from(price.output.0) * u128::from(percent) / 100;
    NanoUsd(u64::try_from(scaled).unwrap_or(u64::MAX))
}
