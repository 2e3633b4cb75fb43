/** Numbers and lengths as they are read. */
export const digits = (value: number) => (value === 0 ? "0" : Math.abs(value) >= 1e4 || Math.abs(value) < 1e-2 ? value.toExponential(2) : value.toPrecision(3));

/** Return a unit as it is read: m^3 as m³. */
export const unitText = (unit: string) => unit.replace(/\^(-?\d+)/g, (_, power: string) => [...power].map((each) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(each)] ?? "⁻").join(""));

/** Return a length [m] with the unit that it is read in. */
export const length = (metres: number) => (metres >= 1 ? `${Number(metres.toPrecision(4))} m` : metres >= 0.01 ? `${Number((metres * 100).toPrecision(4))} cm` : `${Number((metres * 1000).toPrecision(4))} mm`);
